#pragma once
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/engine/trainer_state.h"

namespace dstrain::engine {

/// Something in which a run and a checkpoint differ.
struct RunDifference {
  std::string text;    ///< "seed is 42 in the checkpoint and 7 now"
  std::string remedy;  ///< "set --seed 42"
  bool operator==(const RunDifference&) const = default;
};

/// What of a run decides its samples and their order, and differs from what a checkpoint's state
/// says. What an older state does not tell is not compared. `checkpoint` is the directory, where a
/// remedy names it.
std::vector<RunDifference> data_differences(const TrainerState& saved,
                                            const TrainerState& run,
                                            const std::string& checkpoint);

/// What becomes of other samples than the checkpoint's.
enum class OtherData : std::uint8_t { refused, taken };

/// The state of the run that wrote `checkpoint`, once it is sure that `run` can go on from there:
/// the same function of the same parameters, the states that its optimizer goes on from and, unless
/// others are taken, the same samples in the same order. Ranks, stage, micro batch, precision, rate
/// and number of steps may differ. Throws Error{config} that names both values and the remedy,
/// Error{input} for a damaged file, or Error{newer_format} for one of a newer dstrain.
TrainerState read_run(const checkpoint::Checkpoint& checkpoint,
                      const TrainerState& run,
                      const model::Model& model,
                      OtherData other_data);

}  // namespace dstrain::engine
