#pragma once
#include <string>
#include <vector>

#include "launcher/plan/core_binding.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// Makes a job that was put together on another machine fit this node: its own daemon, its GPUs,
/// the directory of its log files, the shell that sources --venv_script. Returns a warning, or
/// nothing. Throws Error for what the node does not have.
std::string fit_job_to_node(JobSpec& job);

/// Where each rank of the job runs on this node; empty: anywhere. Throws Error when they cannot be
/// bound.
std::vector<CoreBinding> bind_ranks(const JobSpec& job);

}  // namespace dstrain::launcher
