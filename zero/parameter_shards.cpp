#include "zero/parameter_shards.h"

#include <algorithm>

namespace dstrain::zero {
namespace {

TensorView flat_view(std::span<float> values) {
  return {values, {static_cast<std::int64_t>(values.size())}};
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
  return numel * size_of(DType::f32);
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
  std::span<float> rest = memory_.as<float>();
  for (const Segment& segment : layout.segments()) {
    const auto kept = static_cast<std::size_t>(kept_numel(segment, policy));
    segments_.push_back(rest.first(kept));
    rest = rest.subspan(kept);
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
      const std::span<float> values = whole(layout_.segment(place.segment))
                                          ? segments_[static_cast<std::size_t>(place.segment)]
                                          : slots_->view(place.segment);
      views.emplace_back(values.subspan(static_cast<std::size_t>(place.offset)), place.spec.shape);
    }
    views_.push_back(std::move(views));
  }
}

bool ParameterShards::whole(const Segment& segment) const {
  return kept_numel(segment, policy_) == segment.numel;
}

std::span<float> ParameterShards::own_shard(int segment) const {
  const std::span<float> kept = segments_[static_cast<std::size_t>(segment)];
  const auto shard = static_cast<std::size_t>(layout_.segment(segment).shard_numel);
  if (kept.size() == shard) return kept;
  return kept.subspan(static_cast<std::size_t>(communicator_.rank()) * shard, shard);
}

std::span<float> ParameterShards::updated(int segment) const {
  return policy_.shard_optimizer ? own_shard(segment)
                                 : segments_[static_cast<std::size_t>(segment)];
}

void ParameterShards::load(const model::ParameterSource& source, StreamView stream) {
  stream.synchronize();
  for (int index = 0; index < static_cast<int>(layout_.segments().size()); ++index) {
    load_shard(index, source);
  }
  gather_whole_segments(stream);
  if (slots_) slots_->invalidate();
}

void ParameterShards::load_shard(int index, const model::ParameterSource& source) {
  const Segment& segment = layout_.segment(index);
  const std::span<float> shard = own_shard(index);
  const std::int64_t begin = communicator_.rank() * segment.shard_numel;
  std::fill(shard.begin(), shard.end(), 0.0F);  // the padding
  for (const int parameter : segment.parameters) {
    const Placement& place = layout_.parameter(parameter);
    const ElementRange range{
        std::max(begin, place.offset),
        std::min(begin + segment.shard_numel, place.offset + place.spec.shape.numel())};
    if (range.count() <= 0) continue;
    source.read(place.spec, range.begin - place.offset,
                shard.subspan(static_cast<std::size_t>(range.begin - begin),
                              static_cast<std::size_t>(range.count())));
  }
}

void ParameterShards::gather_whole_segments(StreamView stream) {
  for (int index = 0; index < static_cast<int>(layout_.segments().size()); ++index) {
    if (!whole(layout_.segment(index))) continue;
    communicator_.all_gather(flat_view(own_shard(index)),
                             flat_view(segments_[static_cast<std::size_t>(index)]), stream);
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
