#pragma once
#include <vector>

#include "runtime/comm/control/control_group.h"
#include "runtime/config/train_settings.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::session {

/// The ranks that write checkpoints into the same directory as this one: all, or those of its node.
/// Collective.
std::vector<int> directory_ranks(comm::ControlGroup& control,
                                 const WorkerEnv& worker,
                                 const config::CheckpointSettings& settings);

/// How long a rank waits to see a file that another host has written: while one waits, the others
/// wait in a collective.
double visible_within(const WorkerEnv& worker);

}  // namespace dstrain::session
