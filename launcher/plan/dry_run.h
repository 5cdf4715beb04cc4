#pragma once
#include <string>
#include <vector>

#include "launcher/plan/resources.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// The input of dry_run_json().
struct DryRun {
  const Resources& resources;
  std::string master_addr;
  int master_port = 0;
  std::vector<JobSpec> specs;                      ///< of the agents that this launcher starts
  const TaskCommand* task_command = nullptr;       ///< starts these agents, if one program does
  const std::vector<std::string>* idle = nullptr;  ///< of an elastic job
};

/// What a launch would do, as one JSON object on one line: launcher, world_size, master_addr,
/// master_port, hosts, commands (the argv of srun or mpirun when one of these starts all; else of
/// every rank that would be started, in rank order), env (what all ranks share) and, of an elastic
/// job, idle (slots and hosts without a rank). Values that may be secret are shown as "<hidden>".
std::string dry_run_json(const DryRun& run);

}  // namespace dstrain::launcher
