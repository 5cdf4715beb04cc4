#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/checkpoint/shard_writer.h"

namespace dstrain::test {

/// A model's parameters in some states, and how ranks share them.
struct SavedModel {
  std::int64_t step = 12;
  int world = 2;
  bool bf16 = false;  ///< with a state "weights"
  std::uint64_t seed = 1;
  std::vector<checkpoint::TensorRecord> tensors;
};

/// Tensors of the given sizes, cut among the ranks at random places; some ranks get nothing.
SavedModel random_model(std::uint64_t seed, int world, const std::vector<std::int64_t>& numels);

/// The values of a state of a parameter: the same for the same model.
std::vector<float> values_of(const SavedModel& model,
                             std::string_view state,
                             std::string_view parameter);

/// Writes shards and small files into `root`; returns the manifest of what lies there.
checkpoint::Manifest write_files(const std::filesystem::path& root, const SavedModel& model);

/// Writes and commits a checkpoint; returns its directory.
std::filesystem::path save(const std::filesystem::path& output, const SavedModel& model);

}  // namespace dstrain::test
