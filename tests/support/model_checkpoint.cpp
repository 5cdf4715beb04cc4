#include "tests/support/model_checkpoint.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/checkpoint/shard_writer.h"

namespace dstrain::test {

using namespace checkpoint;

namespace {

constexpr const char* state = "fp32";

TensorRecord cut(const model::ParameterSpec& spec, int world) {
  TensorRecord tensor{spec.name, spec.shape, {}};
  const std::int64_t numel = spec.shape.numel();
  for (int rank = 0; rank < world; ++rank) {
    const Slice slice{rank, numel * rank / world, numel * (rank + 1) / world};
    if (slice.begin < slice.end) tensor.slices.push_back(slice);
  }
  return tensor;
}

FileRecord write_rank(const std::filesystem::path& root,
                      const Manifest& manifest,
                      int rank,
                      std::span<const model::ParameterSpec> parameters,
                      const model::ParameterSource& source) {
  std::deque<std::vector<float>> values;
  std::vector<ShardTensor> tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (const Slice& slice : manifest.tensors[i].slices) {
      if (slice.rank != rank) continue;
      const std::int64_t numel = slice.end - slice.begin;
      values.emplace_back(static_cast<std::size_t>(numel));
      source.read(parameters[i], slice.begin, values.back());
      tensors.push_back(
          {fmt::format("{}.{}", state, parameters[i].name), {std::span(values.back()), {numel}}});
    }
  }
  return write_shard(root, manifest.shard_path(manifest.states.front(), rank), tensors);
}

}  // namespace

std::filesystem::path write_model_checkpoint(const std::filesystem::path& output,
                                             const ModelCheckpoint& what,
                                             std::span<const model::ParameterSpec> parameters,
                                             const model::ParameterSource& source) {
  PendingCheckpoint pending(output, what.step);
  Manifest manifest;
  manifest.step = what.step;
  manifest.world_size = what.world;
  manifest.states = {{state, DType::f32, "optim_states"}};
  for (const auto& spec : parameters) manifest.tensors.push_back(cut(spec, what.world));
  for (int rank = 0; rank < what.world; ++rank) {
    manifest.files.push_back(write_rank(pending.path(), manifest, rank, parameters, source));
  }
  manifest.files.push_back(write_text(pending.path(), "config.json", what.config_json));
  manifest.files.push_back(
      write_text(pending.path(), "latest", fmt::format("global_step{}", what.step)));
  std::ranges::sort(manifest.files, {}, &FileRecord::path);
  pending.commit(manifest);
  return output / directory_name(what.step);
}

}  // namespace dstrain::test
