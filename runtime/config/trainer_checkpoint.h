#pragma once
#include <filesystem>

namespace dstrain::config {

/// Whether a directory is a checkpoint of Hugging Face's Trainer, by its trainer_state.json.
bool is_trainer_checkpoint(const std::filesystem::path& directory);

}  // namespace dstrain::config
