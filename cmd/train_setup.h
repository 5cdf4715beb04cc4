#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/kept_batch.h"
#include "runtime/config/resolve.h"
#include "runtime/config/train_options.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/run_setup.h"

namespace dstrain::cmd {

/// The setup of a run that `train` has been asked for: every mistake in flags, configuration, model
/// directory and data is found while making it.
struct TrainSetup : session::RunSetup {
  config::TrainOptions options;    ///< as they were typed
  config::Context context;         ///< in which they came to
  bool of_bytes = false;           ///< the model's tokens are bytes of text
  std::vector<std::string> notes;  ///< what was decided without being asked for, a line each
};

struct TrainPlace {
  int world_size = 1;
  DeviceKind device = DeviceKind::cpu;
  Bytes device_memory = 0;        ///< budget per rank; 0: none
  session::DeviceRoom room = {};  ///< of one of the ranks
  Bytes host_memory = 0;          ///< budget of the ranks of this machine; 0: what is available
  int node_ranks = 0;  ///< of this machine, none of which has allocated; 0: not looked at
  int ranks_here = 0;  ///< that shall start on this machine; 0: they have begun to
  int first_slot = 0;  ///< of the first of these: which of the visible devices it has
  bool starts = true;  ///< false: nothing is to be written, and warnings are told at once
  /// Of an elastic job.
  std::optional<config::KeptBatch> kept_batch = std::nullopt;
};

/// The place of this rank, which has not allocated yet. One rank of a node looks at its memory for
/// all.
TrainPlace place_of(const WorkerEnv& worker);

/// Throws Error{usage, config, input}, the second also when the plan does not fit into the budget.
TrainSetup set_up_training(const config::TrainOptions& options, const TrainPlace& place);

/// What makes it take less memory.
session::Remedies remedies_for(const TrainSetup& setup);

}  // namespace dstrain::cmd
