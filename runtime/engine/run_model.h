#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/catalog.h"
#include "runtime/engine/trainer_state.h"

namespace dstrain::engine {

/// The newest intact checkpoint of an output directory, which has the latest state of its run.
struct NewestCheckpoint {
  std::filesystem::path path;
  std::optional<TrainerState> state{};  ///< none if the checkpoint has none
  std::vector<std::string> damaged{};   ///< why newer ones are passed over, a line each
};

/// Returns nothing if no checkpoint in `output` is intact as far as `depth` checks. Throws
/// Error{input} if `output` is not a directory, Error{newer_format} if the newest one, or its
/// state, is of a newer dstrain.
std::optional<NewestCheckpoint> find_newest_checkpoint(const std::filesystem::path& output,
                                                       checkpoint::Depth depth);

/// The checkpoint with the model of its run: the best one so far if the run has
/// --load_best_model_at_end and has evaluated, else `newest` itself. Does not check that the best
/// one still exists.
std::filesystem::path model_of_run(const NewestCheckpoint& newest);

}  // namespace dstrain::engine
