#pragma once
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/engine/trainer_state.h"

namespace dstrain::engine {

/// A difference between a run and a checkpoint.
struct RunDifference {
  std::string text;    ///< "seed is 42 in the checkpoint and 7 now"
  std::string remedy;  ///< "set --seed 42"
  bool operator==(const RunDifference&) const = default;
};

/// Returns the settings that decide the samples of a run and their order, and that differ from
/// those in a checkpoint's state. Settings that an older state does not have are not compared.
/// `checkpoint` is the directory, for remedies that name it.
std::vector<RunDifference> data_differences(const TrainerState& saved,
                                            const TrainerState& run,
                                            const std::string& checkpoint);

/// Whether a run may go on with other samples than those of the checkpoint.
enum class OtherData : std::uint8_t { refused, taken };

/// Returns the state of the run that wrote `checkpoint`, after checking that `run` can go on from
/// it. It needs the same function of the same parameters, the states of its optimizer and, unless
/// others are taken, the same samples in the same order. Ranks, stage, micro-batch, precision, rate
/// and number of steps may differ. Throws Error{config} with both values and the remedy,
/// Error{input} for a damaged file, or Error{newer_format} for one of a newer dstrain.
TrainerState read_run(const checkpoint::Checkpoint& checkpoint,
                      const TrainerState& run,
                      const model::Model& model,
                      OtherData other_data);

}  // namespace dstrain::engine
