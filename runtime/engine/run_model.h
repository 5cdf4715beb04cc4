#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/catalog.h"
#include "runtime/engine/trainer_state.h"

namespace dstrain::engine {

/// The newest intact checkpoint of an output directory, which knows most of its run.
struct NewestCheckpoint {
  std::filesystem::path path;
  std::optional<TrainerState> state{};  ///< none where the checkpoint has none
  std::vector<std::string> damaged{};   ///< why newer ones do not count, a line each
};

/// Returns nothing when no checkpoint in `output` is intact as far as `depth` looks. Throws
/// Error{input} when `output` is no directory, Error{newer_format} when the newest one, or its
/// state, is a newer dstrain's.
std::optional<NewestCheckpoint> find_newest_checkpoint(const std::filesystem::path& output,
                                                       checkpoint::Depth depth);

/// The checkpoint that is its run's model: the best one so far where the run has
/// --load_best_model_at_end and has evaluated, else `newest` itself. Whether the best one is still
/// there is not looked at.
std::filesystem::path model_of_run(const NewestCheckpoint& newest);

}  // namespace dstrain::engine
