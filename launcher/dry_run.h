#pragma once
#include <string>

#include "launcher/job_env.h"
#include "launcher/placement.h"
#include "launcher/protocol.h"

namespace dstrain::launcher {

/// What a launch would do, as one JSON object on one line: launcher, world_size, master_addr,
/// master_port, hosts, commands (the argv of every rank, in rank order) and env (what all ranks
/// share). Values that may be secret are shown as "<hidden>".
std::string dry_run_json(const HostPlan& plan, const JobIdentity& identity, const JobSpec& job);

}  // namespace dstrain::launcher
