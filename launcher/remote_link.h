#pragma once
#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include "launcher/agent_link.h"
#include "launcher/options.h"

namespace dstrain::launcher {

/// Opens the link to the agent of another host. `mask` is the signal mask of child processes.
using OpenRemote =
    std::function<std::unique_ptr<AgentLink>(const std::string& host, const sigset_t& mask)>;

/// How the options say that hosts are reached: through --ssh_command. Throws Error{usage} when they
/// say nothing that works. `job_id` marks the processes that are started.
OpenRemote choose_remote_link(const LaunchOptions& options, const std::string& job_id);

}  // namespace dstrain::launcher
