#include "zero/parameter_shards.h"

#include <algorithm>

#include "runtime/ops/convert.h"
#include "zero/shard_slices.h"

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
    const Shape shape{static_cast<std::int64_t>(count)};
    ops::convert({exact, shape}, {rest, shape});
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
                                 Options options,
                                 Communication communication,
                                 Memory memory,
                                 StreamView stream)
    : layout_(layout),
      policy_(options.policy),
      overlap_(options.overlap),
      communication_(communication),
      memory_(kept_bytes(layout, options.policy), memory.parameters, stream) {
  std::byte* next = memory_.bytes().data();
  for (const Segment& segment : layout.segments()) {
    segments_.emplace_back(next, layout.dtype(), Shape{kept_numel(segment, policy_)});
    next += segments_.back().bytes();
  }
  if (gathers(layout, policy_)) {
    slots_ = std::make_unique<GatherSlots>(layout, overlap_, communication, memory.buffers, stream);
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
    std::vector<int>& gathered = gathered_.emplace_back();
    for (const int index : layout_.unit_segments(unit)) {
      if (!whole(layout_.segment(index))) gathered.push_back(index);
    }
  }
}

bool ParameterShards::whole(const Segment& segment) const {
  return kept_numel(segment, policy_) == segment.numel;
}

TensorView ParameterShards::own_shard(int segment) const {
  return own_part(layout_.segment(segment), communication_.rank(),
                  segments_[static_cast<std::size_t>(segment)]);
}

TensorView ParameterShards::updated(int segment) const {
  return policy_.shard_optimizer ? own_shard(segment)
                                 : segments_[static_cast<std::size_t>(segment)];
}

void ParameterShards::load(const model::ParameterSource& source,
                           engine::StateStore* masters,
                           StreamView stream) {
  stream.synchronize();
  communication_.synchronize();
  for (int index = 0; index < static_cast<int>(layout_.segments().size()); ++index) {
    if (masters == nullptr) {
      load_shard(index, source, {});
    } else {
      load_with_master(index, source, *masters, stream);
    }
    if (whole(layout_.segment(index))) {
      gather_whole(index, stream);
    } else {
      slots_->drop(index);
    }
  }
  communication_.synchronize();
}

void ParameterShards::load_with_master(int index,
                                       const model::ParameterSource& source,
                                       engine::StateStore& masters,
                                       StreamView stream) {
  const std::span<float> values = masters.acquire(index, stream).back();
  const TensorView master(values, {static_cast<std::int64_t>(values.size())});
  const TensorView own = own_part(layout_.segment(index), communication_.rank(), master);
  stream.synchronize();
  load_shard(index, source, own.as<float>());
  if (!policy_.shard_optimizer) {
    communication_.communicator().all_gather(own, master, communication_.stream());
    communication_.synchronize();
  }
  masters.release(index, stream);
}

void ParameterShards::load_shard(int index,
                                 const model::ParameterSource& source,
                                 std::span<float> master) {
  const TensorView shard = own_shard(index);
  std::fill_n(shard.data(), shard.bytes(), std::byte{0});  // the padding
  std::fill(master.begin(), master.end(), 0.0F);
  for (const ShardSlice& slice : shard_slices(layout_, index, communication_.rank())) {
    const std::int64_t count = slice.elements.count();
    const auto exact = master.empty() ? master
                                      : master.subspan(static_cast<std::size_t>(slice.offset),
                                                       static_cast<std::size_t>(count));
    read_values(source, layout_.parameter(slice.parameter).spec, slice.elements.begin,
                shard.part(slice.offset, {count}), exact);
  }
}

void ParameterShards::gather_whole(int segment, StreamView stream) {
  communication_.follow(stream);
  communication_.communicator().all_gather(
      own_shard(segment), segments_[static_cast<std::size_t>(segment)], communication_.stream());
}

std::span<const TensorView> ParameterShards::acquire(int unit, StreamView stream) {
  schedule_.advance(unit);
  const std::vector<int>& gathered = gathered_[static_cast<std::size_t>(unit)];
  for (const int index : gathered) slots_->gather(index, own_shard(index), stream);
  prefetch(unit, stream);
  for (const int index : gathered) slots_->wait(index, stream);
  return views_[static_cast<std::size_t>(unit)];
}

/// Begins to gather what the unit after `current` needs, within the limits.
void ParameterShards::prefetch(int current, StreamView stream) {
  const int next = schedule_.upcoming(0);
  if (!overlap_.enabled || next == UnitSchedule::unknown) return;
  std::int64_t ahead_numel = 0;
  for (const int index : gathered_[static_cast<std::size_t>(next)]) {
    if (slots_->holds(index)) continue;
    if (ahead_numel >= overlap_.prefetch_numel) return;
    if (slots_->displaces_any(index, gathered_[static_cast<std::size_t>(current)]) ||
        slots_->live_numel_with(index) > overlap_.live_numel) {
      continue;
    }
    slots_->gather(index, own_shard(index), stream);
    ahead_numel += layout_.segment(index).numel;
  }
}

void ParameterShards::release(int unit) {
  for (const int index : gathered_[static_cast<std::size_t>(unit)]) {
    if (!reused_soon(index)) slots_->drop(index);
  }
}

/// Whether no more elements than the limit are gathered before the segment's next use, or that use
/// is not known.
bool ParameterShards::reused_soon(int segment) const {
  std::int64_t distance_numel = 0;
  for (std::int64_t skipped = 0; distance_numel <= overlap_.reuse_numel; ++skipped) {
    const int unit = schedule_.upcoming(skipped);
    if (unit == UnitSchedule::unknown) return true;
    for (const int index : gathered_[static_cast<std::size_t>(unit)]) {
      if (index == segment) return true;
    }
    for (const int index : gathered_[static_cast<std::size_t>(unit)]) {
      distance_numel += layout_.segment(index).numel;
    }
  }
  return false;
}

void ParameterShards::publish(int segment, StreamView stream) {
  if (!whole(layout_.segment(segment))) {
    slots_->drop(segment);
  } else if (policy_.shard_optimizer) {
    gather_whole(segment, stream);
  }
}

}  // namespace dstrain::zero
