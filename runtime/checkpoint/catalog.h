#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dstrain::checkpoint {

/// A directory OUTPUT_DIR/checkpoint-N that is there, whole or not.
struct Found {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// "checkpoint-12".
std::string directory_name(std::int64_t step);

/// All of them, the newest first. Temporary directories do not count. Throws Error{input} when
/// `output` is no directory.
std::vector<Found> list_checkpoints(const std::filesystem::path& output);

/// What is wrong with a checkpoint: each changed, missing or extra file, a line with the place;
/// nothing when it verifies. Reads all of it.
std::vector<std::string> verify(const std::filesystem::path& directory);

/// Removes all but the `keep` newest that verify; what is damaged goes too once `keep` whole ones
/// are there. Never removes the newest one that verifies: `keep` is at least 1. A directory is
/// renamed before it is removed, so that no half of one is taken for whole. Returns what it
/// removed.
std::vector<std::filesystem::path> prune(const std::filesystem::path& output, std::int64_t keep);

}  // namespace dstrain::checkpoint
