#include "runtime/engine/staged_shard.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/parallel_for.h"

namespace dstrain::engine {
namespace {

constexpr Bytes shard_alignment = 64;

/// Copies `values` and says whether all are finite: no exponent of ones only.
template <class Bits>
bool copy_finite(std::span<const Bits> values, Bits exponent, Bits* to) {
  Bits not_finite = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bits value = values[i];
    to[i] = value;
    not_finite = static_cast<Bits>(not_finite | ((value & exponent) == exponent ? 1U : 0U));
  }
  return not_finite == 0;
}

template <class Bits>
bool copy_in_blocks(TensorView from, TensorView to, Bits exponent) {
  constexpr std::int64_t block = 1 << 16;
  const std::span<const Bits> values(reinterpret_cast<const Bits*>(from.data()),
                                     static_cast<std::size_t>(from.numel()));
  std::vector<std::uint8_t> finite(static_cast<std::size_t>(round_up(from.numel(), block) / block));
  parallel_for(static_cast<std::int64_t>(finite.size()), [&](std::int64_t index) {
    const auto begin = static_cast<std::size_t>(index * block);
    const auto part = values.subspan(begin, std::min<std::size_t>(block, values.size() - begin));
    finite[static_cast<std::size_t>(index)] =
        copy_finite(part, exponent, reinterpret_cast<Bits*>(to.data()) + begin) ? 1 : 0;
  });
  return std::ranges::all_of(finite, [](std::uint8_t good) { return good != 0; });
}

bool copy_values(TensorView from, TensorView to) {
  if (from.dtype() == DType::f32) return copy_in_blocks<std::uint32_t>(from, to, 0x7F800000U);
  return copy_in_blocks<std::uint16_t>(from, to, 0x7F80U);
}

}  // namespace

std::vector<checkpoint::StateRecord> state_records(std::span<const SavedState> states) {
  std::vector<checkpoint::StateRecord> records;
  for (const SavedState& state : states) {
    const char* const file = state.dtype == DType::f32 ? "optim_states" : "model_states";
    records.push_back({state.name, state.dtype, file});
  }
  return records;
}

StagedShard::StagedShard(std::span<const SavedState> states,
                         std::span<const ParameterSlice> slices) {
  for (const checkpoint::StateRecord& state : state_records(states)) {
    std::vector<Place>& places = places_.emplace_back();
    const std::string* last = nullptr;
    for (const ParameterSlice& slice : slices) {
      if (last == nullptr || *last != slice.parameter) add_tensor(state, slice.parameter);
      last = &slice.parameter;
      Tensor& tensor = tensors_.back();
      places.push_back({tensors_.size() - 1, tensor.numel});
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

TensorView StagedShard::view(const Tensor& tensor) const {
  return {memory_.bytes().data() + tensor.offset, tensor.dtype, {tensor.numel}};
}

void StagedShard::reserve(MemoryResource& memory, StreamView stream) {
  if (memory_.bytes().data() == nullptr) memory_ = Buffer(bytes_, memory, stream);
}

std::optional<std::string> StagedShard::copy(ParameterStore& store, StreamView stream) {
  std::optional<std::string> bad;
  store.visit_saved(
      [&](SavedPlace saved, TensorView values) {
        const Place& place = places_[saved.state][saved.slice];
        const Tensor& tensor = tensors_[place.tensor];
        const TensorView copy = view(tensor).part(place.begin + saved.begin, values.shape());
        if (!copy_values(values, copy) && !bad) bad = tensor.name;
      },
      stream);
  return bad;
}

std::vector<checkpoint::ShardTensor> StagedShard::tensors(std::string_view file) const {
  std::vector<checkpoint::ShardTensor> tensors;
  for (const Tensor& tensor : tensors_) {
    if (tensor.file == file) tensors.push_back({tensor.name, view(tensor)});
  }
  return tensors;
}

}  // namespace dstrain::engine
