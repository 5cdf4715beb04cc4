#pragma once
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/engine/trainer_state.h"

namespace dstrain::engine {

/// What of a run decides its samples and their order, and differs from what a checkpoint's state
/// says: both values and the remedy, a line each. What an older state does not tell is not
/// compared. `checkpoint` is the directory, where a remedy names it.
std::vector<std::string> data_differences(const TrainerState& saved_state,
                                          const TrainerState& run_state,
                                          const std::string& checkpoint);

/// The state of the run that wrote `checkpoint`, once it is sure that `run` can go on from there to
/// the same end: the same samples in the same order, the same function of the same parameters.
/// Ranks, stage, micro batch, precision, rate and number of steps may differ. Throws Error{config}
/// that names both values and the remedy, Error{input} for a damaged file, or Error{newer_format}
/// for one of a newer dstrain.
TrainerState read_run(const checkpoint::Checkpoint& checkpoint,
                      const TrainerState& run,
                      const model::Model& model);

}  // namespace dstrain::engine
