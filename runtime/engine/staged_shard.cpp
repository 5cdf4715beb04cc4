#include "runtime/engine/staged_shard.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/parallel_for.h"

namespace dstrain::engine {
namespace {

constexpr Bytes alignment = 64;

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
    for (const ParameterSlice& slice : slices) {
      const std::int64_t numel = slice.end - slice.begin;
      places.push_back(
          {state.name + "." + slice.parameter, state.file, state.dtype, numel, bytes_});
      bytes_ += round_up(numel * size_of(state.dtype), alignment);
    }
  }
}

TensorView StagedShard::view(const Place& place) const {
  return {memory_.bytes().data() + place.offset, place.dtype, {place.numel}};
}

void StagedShard::reserve(MemoryResource& memory, StreamView stream) {
  if (memory_.bytes().data() == nullptr) memory_ = Buffer(bytes_, memory, stream);
}

std::optional<std::string> StagedShard::copy(ParameterStore& store, StreamView stream) {
  std::optional<std::string> bad;
  store.visit_saved(
      [&](SavedPlace saved, TensorView values) {
        const Place& place = places_[saved.state][saved.slice];
        const TensorView copy = view(place).part(saved.begin, values.shape());
        if (!copy_values(values, copy) && !bad) bad = place.name;
      },
      stream);
  return bad;
}

std::vector<checkpoint::ShardTensor> StagedShard::tensors(std::string_view file) const {
  std::vector<checkpoint::ShardTensor> tensors;
  for (const std::vector<Place>& places : places_) {
    for (const Place& place : places) {
      if (place.file == file) tensors.push_back({place.name, view(place)});
    }
  }
  return tensors;
}

}  // namespace dstrain::engine
