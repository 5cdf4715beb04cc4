#pragma once
#include <memory>
#include <string>

#include "launcher/hosts/agent_link.h"
#include "launcher/hosts/binary_bundle.h"

namespace dstrain::launcher {

/// A host to reach over SSH, and what to run there.
struct SshTarget {
  std::string host;            ///< a name, an alias of the configuration, or an address
  int port = 0;                ///< 0: the configuration's, else 22
  std::string config_file;     ///< empty: the user's and the system's
  std::string remote_command;  ///< one line for the user's shell there
  /// Programs to copy to the host first; then their agent runs instead of remote_command.
  std::shared_ptr<const BinaryBundle> programs;
  bool accept_new_host_keys = false;
  double connect_timeout_seconds = 20;  ///< until the remote command runs, authentication included
};

/// A link through libssh. Returns at once: a thread connects, checks the host's key, authenticates
/// with the SSH agent and key files (never with a password), runs the command and then carries
/// bytes between it and the link. Every failure ends the stream, and end_reason() says why and what
/// to do. Throws Error{config} if the plug-in libdstrain_ssh.so, or libssh, is missing.
std::unique_ptr<AgentLink> connect_ssh_agent(const SshTarget& target);

/// The plug-in's function: makes a link, for the caller to delete. Plug-in and program are built
/// together.
using MakeSshLink = AgentLink*(const SshTarget* target);
inline constexpr const char* make_ssh_link_symbol = "dstrain_make_ssh_link_1";

}  // namespace dstrain::launcher
