#include "runtime/engine/staged_shard.h"

#include <algorithm>

namespace dstrain::engine {
namespace {

constexpr Bytes shard_alignment = 64;

}  // namespace

std::vector<checkpoint::StateRecord> state_records(std::span<const SavedState> states) {
  std::vector<checkpoint::StateRecord> records;
  for (const SavedState& state : states) {
    records.push_back({state.name, state.dtype,
                       state.rounded ? checkpoint::model_file : checkpoint::optimizer_file});
  }
  return records;
}

StagedShard::StagedShard(std::span<const SavedState> states,
                         std::span<const ParameterSlice> slices) {
  for (const checkpoint::StateRecord& state : state_records(states)) {
    std::vector<SliceStart>& starts = slice_starts_.emplace_back();
    const std::string* last = nullptr;
    for (const ParameterSlice& slice : slices) {
      if (last == nullptr || *last != slice.parameter) add_tensor(state, slice.parameter);
      last = &slice.parameter;
      Tensor& tensor = tensors_.back();
      starts.push_back({tensors_.size() - 1, tensor.numel});
      tensor.numel += slice.end - slice.begin;
      bytes_ = tensor.offset + tensor.numel * size_of(tensor.dtype);
    }
  }
  bytes_ = round_up(bytes_, shard_alignment);
}

void StagedShard::add_tensor(const checkpoint::StateRecord& state, const std::string& parameter) {
  tensors_.push_back({.name = state.name + "." + parameter,
                      .file = state.file,
                      .dtype = state.dtype,
                      .offset = round_up(bytes_, shard_alignment)});
}

HostView StagedShard::view(const Tensor& tensor) const {
  return memory_.block().cut(tensor.offset, tensor.dtype, {tensor.numel});
}

void StagedShard::reserve(MemoryResource& memory, StreamView stream) {
  if (memory_.empty()) memory_ = HostBuffer(bytes_, memory, stream);
}

std::optional<std::string> StagedShard::copy(ParameterStore& store) {
  std::vector<std::int32_t> not_finite(tensors_.size());
  store.copy_saved([&](SavedValues saved, Shape shape) -> SaveTarget {
    const SliceStart& start = slice_starts_[saved.state][saved.slice];
    return {view(tensors_[start.tensor]).part(start.begin + saved.begin, shape),
            HostView(&not_finite[start.tensor], DType::i32, {1})};
  });
  const auto bad = std::ranges::find(not_finite, 1);
  if (bad == not_finite.end()) return std::nullopt;
  return tensors_[static_cast<std::size_t>(bad - not_finite.begin())].name;
}

std::vector<checkpoint::ShardTensor> StagedShard::tensors(std::string_view file) const {
  std::vector<checkpoint::ShardTensor> tensors;
  for (const Tensor& tensor : tensors_) {
    if (tensor.file == file) tensors.push_back({tensor.name, view(tensor)});
  }
  return tensors;
}

}  // namespace dstrain::engine
