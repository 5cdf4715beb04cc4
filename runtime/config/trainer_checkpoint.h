#pragma once
#include <filesystem>

namespace dstrain::config {

/// Whether a directory is a checkpoint of Hugging Face's Trainer or of DeepSpeed, by its
/// trainer_state.json or the pickled states in it.
bool is_trainer_checkpoint(const std::filesystem::path& directory);

}  // namespace dstrain::config
