#include "zero/parameter_shards.h"

#include <algorithm>

namespace dstrain::zero {
namespace {

/// Reads values [begin, begin + values.numel()) of a parameter. In bf16 they come in pieces by way
/// of `master`, or of scratch memory when it is empty.
void read_values(const model::ParameterSource& source,
                 const model::ParameterSpec& spec,
                 std::int64_t begin,
                 TensorView values,
                 std::span<float> master) {
  if (values.dtype() == DType::f32) {
    source.read(spec, begin, values.as<float>());
    return;
  }
  constexpr std::size_t piece = 1 << 18;
  std::span<BFloat16> rest = values.as<BFloat16>();
  std::vector<float> scratch(master.empty() ? std::min(piece, rest.size()) : 0);
  while (!rest.empty()) {
    const std::size_t count = std::min(piece, rest.size());
    const std::span<float> exact = (master.empty() ? std::span(scratch) : master).first(count);
    source.read(spec, begin, exact);
    std::transform(exact.begin(), exact.end(), rest.begin(), to_bfloat16);
    begin += static_cast<std::int64_t>(count);
    rest = rest.subspan(count);
    if (!master.empty()) master = master.subspan(count);
  }
}

}  // namespace

bool ParameterShards::gathers(const FlatLayout& layout, StagePolicy policy) {
  return policy.shard_parameters && layout.world() > 1;
}

std::int64_t ParameterShards::kept_numel(const Segment& segment, StagePolicy policy) {
  return policy.shard_parameters && !segment.persistent ? segment.shard_numel : segment.numel;
}

Bytes ParameterShards::kept_bytes(const FlatLayout& layout, StagePolicy policy) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) numel += kept_numel(segment, policy);
  return numel * size_of(layout.dtype());
}

ParameterShards::ParameterShards(const FlatLayout& layout,
                                 StagePolicy policy,
                                 comm::Communicator& communicator,
                                 Memory memory,
                                 StreamView stream)
    : layout_(layout),
      policy_(policy),
      communicator_(communicator),
      memory_(kept_bytes(layout, policy), memory.parameters, stream) {
  std::byte* next = memory_.bytes().data();
  for (const Segment& segment : layout.segments()) {
    segments_.emplace_back(next, layout.dtype(), Shape{kept_numel(segment, policy)});
    next += segments_.back().bytes();
  }
  if (gathers(layout, policy)) {
    slots_ = std::make_unique<GatherSlots>(layout, memory.buffers, stream);
  }
  view_units();
}

void ParameterShards::view_units() {
  for (int unit = 0; unit < layout_.units(); ++unit) {
    std::vector<TensorView> views;
    for (const int parameter : layout_.unit_parameters(unit)) {
      const Placement& place = layout_.parameter(parameter);
      const TensorView values = whole(layout_.segment(place.segment))
                                    ? segments_[static_cast<std::size_t>(place.segment)]
                                    : slots_->view(place.segment);
      views.push_back(values.part(place.offset, place.spec.shape));
    }
    views_.push_back(std::move(views));
  }
}

bool ParameterShards::whole(const Segment& segment) const {
  return kept_numel(segment, policy_) == segment.numel;
}

TensorView ParameterShards::own_part(int segment, TensorView values) const {
  const std::int64_t shard = layout_.segment(segment).shard_numel;
  return values.part(values.numel() == shard ? 0 : communicator_.rank() * shard, {shard});
}

TensorView ParameterShards::own_shard(int segment) const {
  return own_part(segment, segments_[static_cast<std::size_t>(segment)]);
}

TensorView ParameterShards::updated(int segment) const {
  return policy_.shard_optimizer ? own_shard(segment)
                                 : segments_[static_cast<std::size_t>(segment)];
}

void ParameterShards::load(const model::ParameterSource& source,
                           engine::StateStore* masters,
                           StreamView stream) {
  stream.synchronize();
  for (int index = 0; index < static_cast<int>(layout_.segments().size()); ++index) {
    if (masters == nullptr) {
      load_shard(index, source, {});
      continue;
    }
    const std::span<float> values = masters->acquire(index, stream).back();
    const TensorView master(values, {static_cast<std::int64_t>(values.size())});
    const TensorView own = own_part(index, master);
    stream.synchronize();
    load_shard(index, source, own.as<float>());
    if (!policy_.shard_optimizer) communicator_.all_gather(own, master, stream);
    masters->release(index, stream);
  }
  gather_whole_segments(stream);
  if (slots_) slots_->invalidate();
}

void ParameterShards::load_shard(int index,
                                 const model::ParameterSource& source,
                                 std::span<float> master) {
  const Segment& segment = layout_.segment(index);
  const TensorView shard = own_shard(index);
  const std::int64_t begin = communicator_.rank() * segment.shard_numel;
  std::fill_n(shard.data(), shard.bytes(), std::byte{0});  // the padding
  std::fill(master.begin(), master.end(), 0.0F);
  for (const int parameter : segment.parameters) {
    const Placement& place = layout_.parameter(parameter);
    const ElementRange range{
        std::max(begin, place.offset),
        std::min(begin + segment.shard_numel, place.offset + place.spec.shape.numel())};
    if (range.count() <= 0) continue;
    const auto exact = master.empty()
                           ? master
                           : master.subspan(static_cast<std::size_t>(range.begin - begin),
                                            static_cast<std::size_t>(range.count()));
    read_values(source, place.spec, range.begin - place.offset,
                shard.part(range.begin - begin, {range.count()}), exact);
  }
}

void ParameterShards::gather_whole_segments(StreamView stream) {
  for (int index = 0; index < static_cast<int>(layout_.segments().size()); ++index) {
    if (!whole(layout_.segment(index))) continue;
    communicator_.all_gather(own_shard(index), segments_[static_cast<std::size_t>(index)], stream);
  }
}

std::span<const TensorView> ParameterShards::acquire(int unit, StreamView stream) {
  for (const int index : layout_.unit_segments(unit)) {
    if (!whole(layout_.segment(index))) {
      slots_->gather(index, own_shard(index), communicator_, stream);
    }
  }
  return views_[static_cast<std::size_t>(unit)];
}

void ParameterShards::publish(StreamView stream) {
  if (policy_.shard_optimizer) gather_whole_segments(stream);
  if (slots_) slots_->invalidate();
}

}  // namespace dstrain::zero
