#pragma once
#include <functional>
#include <string>

#include "runtime/engine/checkpointer.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/rank_session.h"
#include "runtime/session/run_setup.h"

namespace dstrain::session {

/// What checkpoints of a session are saved from: its store, by way of host memory or, where its
/// states lie on a disk, of a file there. The ranks of a directory are all, or those of a node.
/// Collective.
engine::Checkpointer::Inputs checkpointer_inputs(const RunSetup& setup,
                                                 JoinedRank& rank,
                                                 RankSession& session,
                                                 std::function<void(const std::string&)> say,
                                                 std::function<void()> flush_beside = {});

/// ... and how: into `output`, with what the settings say.
engine::Checkpointer::Options checkpointer_options(const RunSetup& setup,
                                                   const JoinedRank& rank,
                                                   const std::filesystem::path& output);

/// How long a rank waits to see a file that another host has written: while one waits, the others
/// wait in a collective.
double visible_within(const WorkerEnv& worker);

}  // namespace dstrain::session
