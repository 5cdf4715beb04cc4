#pragma once
#include <memory>
#include <string>
#include <vector>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "launcher/hosts/ssh/ssh_link.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Shared, because a session may be left behind with a thread that is stuck in it.
using SharedSession = std::shared_ptr<ssh_session_struct>;

struct SshKeyTraits {
  using Raw = ssh_key;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw key) noexcept { ssh_key_free(key); }
};
using UniqueSshKey = UniqueHandle<SshKeyTraits>;

/// Copies and frees a text that libssh has allocated.
inline std::string take_text(char* text) {
  std::string copy = text != nullptr ? text : "";
  ssh_string_free_char(text);
  return copy;
}

/// The text of an option that is set, or nothing.
inline std::string option_text(ssh_session session, ssh_options_e option) {
  char* text = nullptr;
  return ssh_options_get(session, option, &text) == SSH_OK ? take_text(text) : "";
}

/// A session that is not connected yet, and what the configuration says about its host.
struct SshRoute {
  SharedSession session;
  std::shared_ptr<ssh_callbacks_struct> callbacks;  ///< the session's, which keeps using them
  std::string host;                                 ///< HostName, or the name itself
  int port = 22;
  std::string user;
  std::string first_hop;           ///< equal for all hosts that are reached through one host
  std::vector<std::string> proxy;  ///< a command to reach it through; empty: directly
  std::string ignored;             ///< options that would matter and that libssh does not know
};

/// Reads the configuration. Throws Error{remote} if it cannot be read or used.
SshRoute plan_route(const SshTarget& target);

/// Whether the configuration has StrictHostKeyChecking `accept-new`, or `no`, for the host.
bool configuration_accepts_new_keys(const SshTarget& target);

}  // namespace dstrain::launcher
