#include "zero/parameter_shards.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/fill_zero.h"
#include "zero/load_values.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

bool keeps_whole(const FlatLayout& layout,
                 const Segment& segment,
                 const ParameterShards::Options& options) {
  return !options.policy.shard_parameters || segment.persistent ||
         (layout.world() == 1 && options.offload.parameters == MemoryTier::device);
}

std::int64_t kept_numel(const Segment& segment, StagePolicy policy) {
  return policy.shard_parameters && !segment.persistent ? segment.shard_numel : segment.numel;
}

}  // namespace

bool ParameterShards::gathers(const FlatLayout& layout, const Options& options) {
  return std::ranges::any_of(layout.segments(), [&](const Segment& segment) {
    return !keeps_whole(layout, segment, options);
  });
}

Bytes ParameterShards::kept_bytes(const FlatLayout& layout,
                                  const Options& options,
                                  bool offloaded) {
  const std::vector<MemoryTier> homes = parameter_homes(layout, options.offload);
  std::int64_t numel = 0;
  for (std::size_t index = 0; index < homes.size(); ++index) {
    const bool here = offloaded ? on_host(homes[index]) : homes[index] == MemoryTier::device;
    if (here) numel += kept_numel(layout.segments()[index], options.policy);
  }
  return numel * size_of(layout.dtype());
}

ParameterShards::ParameterShards(const FlatLayout& layout,
                                 Options options,
                                 Communication communication,
                                 Memory memory,
                                 StreamView stream)
    : layout_(layout),
      options_(options),
      communication_(communication),
      homes_(parameter_homes(layout, options.offload)),
      memory_(kept_bytes(layout, options, false), memory.parameters, stream),
      offloaded_(kept_bytes(layout, options, true), memory.offloaded, stream),
      held_(homes_.size()) {
  Bytes next_here = 0;
  Bytes next_elsewhere = 0;
  for (std::size_t index = 0; index < homes_.size(); ++index) {
    const Segment& segment = layout.segments()[index];
    if (homes_[index] == MemoryTier::nvme) {
      segments_.emplace_back();
      continue;
    }
    const bool elsewhere = on_host(homes_[index]);
    Bytes& next = elsewhere ? next_elsewhere : next_here;
    segments_.push_back((elsewhere ? offloaded_ : memory_)
                            .block()
                            .cut(next, layout.dtype(), {kept_numel(segment, options.policy)}));
    next += segments_.back().bytes();
  }
  if (std::ranges::count(homes_, MemoryTier::nvme) > 0) {
    DSTRAIN_CHECK(memory.disk != nullptr, "nowhere to swap to");
    swap_.emplace(layout, options.offload, *memory.disk, stream);
  }
  if (gathers(layout, options)) {
    slots_ = std::make_unique<GatherSlots>(layout, options.overlap, communication, memory.buffers,
                                           stream);
  }
  view_parts();
}

void ParameterShards::view_parts() {
  for (int part = 0; part < layout_.parts(); ++part) {
    std::vector<TensorView> views;
    for (const int parameter : layout_.part_parameters(part)) {
      if (parameter == FlatLayout::in_tiles) {
        views.emplace_back();
        continue;
      }
      const Placement& place = layout_.parameter(parameter);
      const TensorView values = whole(layout_.segment(place.segment))
                                    ? segments_[static_cast<std::size_t>(place.segment)]
                                    : slots_->view(place.segment);
      views.push_back(values.part(place.offset, place.shape));
    }
    views_.push_back(std::move(views));
    std::vector<int>& gathered = gathered_.emplace_back();
    for (const int index : layout_.part_segments(part)) {
      if (!whole(layout_.segment(index))) gathered.push_back(index);
    }
  }
}

bool ParameterShards::whole(const Segment& segment) const {
  return keeps_whole(layout_, segment, options_);
}

TensorView ParameterShards::own_shard(int segment) const {
  return own_part(layout_.segment(segment), communication_.rank(),
                  segments_[static_cast<std::size_t>(segment)]);
}

bool ParameterShards::swapped(int segment) const {
  return homes_[static_cast<std::size_t>(segment)] == MemoryTier::nvme;
}

TensorView ParameterShards::hold(int segment, bool replaced) {
  if (!swapped(segment)) {
    return options_.policy.shard_optimizer ? own_shard(segment)
                                           : segments_[static_cast<std::size_t>(segment)];
  }
  TensorView& held = held_[static_cast<std::size_t>(segment)];
  if (!held.empty()) return held;
  held = replaced ? swap_->replace(segment) : swap_->take(segment);
  swap_->wait(segment);
  return held;
}

void ParameterShards::end_hold(int segment, bool changed) {
  TensorView& held = held_[static_cast<std::size_t>(segment)];
  if (!held.empty()) swap_->release(segment, changed);
  held = {};
}

void ParameterShards::load_shard(int index,
                                 const model::ParameterSource& source,
                                 StreamView stream) {
  const TensorView shard = own_shard(index);
  ops::fill_zero(shard, stream);  // the padding
  for (const ShardSlice& slice : shard_slices(layout_, index, communication_.rank())) {
    load_values(source, layout_.parameter(slice.parameter).spec, slice.elements.begin,
                shard.part(slice.offset, {slice.elements.count()}), stream);
  }
}

void ParameterShards::loaded(int index, StreamView stream) {
  write_back(index);
  if (whole(layout_.segment(index))) {
    gather_whole(index, stream);
  } else {
    slots_->drop(index);
  }
}

void ParameterShards::gather_whole(int segment, StreamView stream) {
  communication_.follow(stream);
  communication_.communicator().all_gather(
      own_shard(segment), segments_[static_cast<std::size_t>(segment)], communication_.stream());
}

/// Makes a segment whole in its slot, unless it is there.
void ParameterShards::gather(int segment, StreamView stream) {
  if (slots_->holds(segment)) return;
  if (!swapped(segment)) return slots_->gather(segment, own_shard(segment), stream);
  communication_.follow(stream);
  const TensorView shard = swap_->take(segment);
  communication_.host().run([this, segment] { swap_->wait(segment); });
  communication_.follow_host();
  slots_->gather(segment, shard, stream);
  communication_.host_follows();
  communication_.host().run_always([this, segment] { swap_->release(segment, false); });
  slots_->set_filled(segment, communication_.host_now());
}

/// Begins to read from disk what the next parts need. One buffer is left for a gather, and one for
/// what is updated early.
void ParameterShards::read_ahead() {
  if (!swap_) return;
  int left = options_.offload.parameter_buffers - (updates_early(options_.offload) ? 2 : 1);
  for (std::int64_t skipped = 0;; ++skipped) {
    const int part = schedule_.upcoming(skipped);
    if (part == PartSchedule::unknown) return;
    for (const int index : gathered_[static_cast<std::size_t>(part)]) {
      if (!swapped(index) || slots_->holds(index)) continue;
      if (left-- <= 0) return;
      swap_->expect(index);
    }
  }
}

std::span<const TensorView> ParameterShards::acquire(int part, StreamView stream) {
  schedule_.advance(part);
  const std::vector<int>& gathered = gathered_[static_cast<std::size_t>(part)];
  for (const int index : gathered) gather(index, stream);
  in_use_.insert(in_use_.end(), gathered.begin(), gathered.end());
  prefetch(stream);
  read_ahead();
  for (const int index : gathered) slots_->wait(index, stream);
  return views_[static_cast<std::size_t>(part)];
}

/// Begins to gather what the next part needs, within the limits.
void ParameterShards::prefetch(StreamView stream) {
  const int next = schedule_.upcoming(0);
  if (!options_.overlap.enabled || next == PartSchedule::unknown) return;
  std::int64_t ahead_numel = 0;
  for (const int index : gathered_[static_cast<std::size_t>(next)]) {
    if (slots_->holds(index)) continue;
    if (ahead_numel >= options_.overlap.prefetch_numel) return;
    if (slots_->displaces_any(index, in_use_) ||
        slots_->live_numel_with(index) > options_.overlap.live_numel) {
      continue;
    }
    gather(index, stream);
    ahead_numel += layout_.segment(index).numel;
  }
}

void ParameterShards::release(int part) {
  for (const int index : gathered_[static_cast<std::size_t>(part)]) {
    std::erase(in_use_, index);
    if (!reused_soon(index)) slots_->drop(index);
  }
}

/// Whether no more elements than the limit are gathered before the segment's next use, or that use
/// is not known.
bool ParameterShards::reused_soon(int segment) const {
  std::int64_t distance_numel = 0;
  for (std::int64_t skipped = 0; distance_numel <= options_.overlap.reuse_numel; ++skipped) {
    const int part = schedule_.upcoming(skipped);
    if (part == PartSchedule::unknown) return true;
    for (const int index : gathered_[static_cast<std::size_t>(part)]) {
      if (index == segment) return true;
    }
    for (const int index : gathered_[static_cast<std::size_t>(part)]) {
      distance_numel += layout_.segment(index).numel;
    }
  }
  return false;
}

void ParameterShards::publish(int segment, StreamView stream) {
  write_back(segment);
  if (!whole(layout_.segment(segment))) {
    slots_->drop(segment);
  } else if (options_.policy.shard_optimizer) {
    gather_whole(segment, stream);
  }
}

}  // namespace dstrain::zero
