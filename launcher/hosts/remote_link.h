#pragma once
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/hosts/agent_link.h"
#include "launcher/plan/options.h"

namespace dstrain::launcher {

/// Opens the link to the agent of another host. `mask` is the signal mask of child processes.
using OpenRemote =
    std::function<std::unique_ptr<AgentLink>(const std::string& host, const sigset_t& mask)>;

struct RemoteSettings {
  std::string job_id;   ///< marks the processes that are started
  std::string version;  ///< of the programs that --copy_binary copies
  double connect_timeout_seconds = 20;
};

/// How the options say that hosts are reached: through --ssh_command, else libssh. Throws
/// Error{config} when this build has none.
OpenRemote choose_remote_link(const LaunchOptions& options, const RemoteSettings& settings);

/// The one command line that a remote shell is given: it runs `path` as the agent, or else the
/// dstrain on PATH, or prints absent_line. The same for bash, dash, zsh and other shells that know
/// single quotes; nothing of the job is in it. Throws Error{remote} for a path that no quoting
/// brings through every shell.
std::string remote_command(std::string_view path);

/// What comes instead of an agent when there is no dstrain.
inline constexpr std::string_view absent_line = "dstrain-agent-absent";

}  // namespace dstrain::launcher
