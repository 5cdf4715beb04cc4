#include "tests/checkpoint/checkpoint_files.h"

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "runtime/numeric/philox.h"

namespace dstrain::test {

using namespace checkpoint;

SavedModel random_model(std::uint64_t seed, int world, const std::vector<std::int64_t>& numels) {
  SavedModel model;
  model.world = world;
  model.seed = seed;
  std::uint64_t drawn = 0;
  for (const std::int64_t numel : numels) {
    std::vector<std::int64_t> cuts{0, numel};
    for (int rank = 1; rank < world; ++rank) {
      cuts.push_back(static_cast<std::int64_t>(
          uniform_below({.seed = seed, .index = ++drawn}, static_cast<std::uint64_t>(numel) + 1)));
    }
    std::ranges::sort(cuts);
    TensorRecord tensor{fmt::format("h.{}.weight", model.tensors.size()), {numel}, {}};
    for (int rank = 0; rank < world; ++rank) {
      const auto begin = cuts[static_cast<std::size_t>(rank)];
      const auto end = cuts[static_cast<std::size_t>(rank) + 1];
      if (begin < end) tensor.slices.push_back({rank, begin, end});
    }
    model.tensors.push_back(tensor);
  }
  return model;
}

std::vector<float> values_of(const SavedModel& model,
                             std::string_view state,
                             std::string_view parameter) {
  const auto tensor = std::ranges::find(model.tensors, parameter, &TensorRecord::name);
  const std::uint64_t name =
      std::hash<std::string_view>()(parameter) ^ (std::hash<std::string_view>()(state) * 31);
  std::vector<float> values(static_cast<std::size_t>(tensor->shape.numel()));
  std::uint64_t random = model.seed ^ name;
  for (float& value : values) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(random >> 40) - 0x1p23F;
    if (state == "weights") value = to_float(to_bfloat16(value));
  }
  return values;
}

namespace {

std::vector<StateRecord> states_of(const SavedModel& model) {
  std::vector<StateRecord> states{{"fp32", DType::f32, "optim_states"},
                                  {"exp_avg", DType::f32, "optim_states"}};
  if (model.bf16) states.push_back({"weights", DType::bf16, "model_states"});
  return states;
}

/// What a rank writes to one kind of file.
class Shard {
 public:
  void add(const SavedModel& model,
           const StateRecord& state,
           const TensorRecord& tensor,
           const Slice& slice) {
    const std::vector<float> all = values_of(model, state.name, tensor.name);
    const std::vector<float> own(all.begin() + slice.begin, all.begin() + slice.end);
    const Shape shape{slice.end - slice.begin};
    const std::string name = state.name + "." + tensor.name;
    if (state.dtype == DType::f32) {
      singles_.push_back(own);
      tensors_.push_back({name, {std::span(singles_.back()), shape}});
    } else {
      std::vector<BFloat16>& halves = halves_.emplace_back();
      for (const float value : own) halves.push_back(to_bfloat16(value));
      tensors_.push_back({name, {std::span(halves), shape}});
    }
  }
  [[nodiscard]] const std::vector<ShardTensor>& tensors() const { return tensors_; }

 private:
  std::deque<std::vector<float>> singles_;
  std::deque<std::vector<BFloat16>> halves_;
  std::vector<ShardTensor> tensors_;
};

FileRecord write_states(const std::filesystem::path& root,
                        const SavedModel& model,
                        const Manifest& manifest,
                        const StateRecord& like,
                        int rank) {
  Shard shard;
  for (const StateRecord& state : manifest.states) {
    if (state.file != like.file) continue;
    for (const TensorRecord& tensor : model.tensors) {
      for (const Slice& slice : tensor.slices) {
        if (slice.rank == rank) shard.add(model, state, tensor, slice);
      }
    }
  }
  return write_shard(root, manifest.shard_path(like, rank), shard.tensors());
}

}  // namespace

Manifest write_files(const std::filesystem::path& root, const SavedModel& model) {
  Manifest manifest;
  manifest.step = model.step;
  manifest.world_size = model.world;
  manifest.states = states_of(model);
  manifest.tensors = model.tensors;
  for (int rank = 0; rank < model.world; ++rank) {
    manifest.files.push_back(write_states(root, model, manifest, manifest.states.front(), rank));
    if (!model.bf16) continue;
    manifest.files.push_back(write_states(root, model, manifest, manifest.states.back(), rank));
  }
  manifest.files.push_back(write_text(root, "config.json", "{}\n"));
  manifest.files.push_back(write_text(root, "trainer_state.json", "{\"global_step\": 12}\n"));
  manifest.files.push_back(write_text(root, "latest", fmt::format("global_step{}", model.step)));
  std::ranges::sort(manifest.files, {}, &FileRecord::path);
  return manifest;
}

std::filesystem::path save(const std::filesystem::path& output, const SavedModel& model) {
  PendingCheckpoint pending(output, model.step);
  pending.commit(write_files(pending.path(), model));
  return output / directory_name(model.step);
}

}  // namespace dstrain::test
