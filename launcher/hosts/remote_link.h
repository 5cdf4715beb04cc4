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

/// How to reach hosts, from the options: through --ssh_command, else libssh. Throws Error{config}
/// if this build lacks libssh.
OpenRemote choose_remote_link(const LaunchOptions& options, const RemoteSettings& settings);

/// The command line for a remote shell: it runs `path` as the agent, or else the dstrain on PATH,
/// or prints absent_line. The same for bash, dash, zsh and other shells with single quotes;
/// contains nothing of the job. Throws Error{remote} for a path that cannot be quoted for every
/// shell.
std::string remote_command(std::string_view path);

/// Printed instead of an agent's frames if there is no dstrain.
inline constexpr std::string_view absent_line = "dstrain-agent-absent";

}  // namespace dstrain::launcher
