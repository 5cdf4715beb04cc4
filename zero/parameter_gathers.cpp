#include "zero/parameter_gathers.h"

#include <algorithm>

namespace dstrain::zero {
namespace {

bool gathers(const ShardPlan& plan) {
  return !std::ranges::all_of(plan.segments, &SegmentShare::whole);
}

}  // namespace

Bytes ParameterGathers::buffer_bytes(const FlatLayout& layout,
                                     const ShardPlan& plan,
                                     const Overlap& overlap) {
  return gathers(plan) ? GatherBuffers::bytes(layout, overlap) : 0;
}

ParameterGathers::ParameterGathers(RankShards& shards,
                                   const Overlap& overlap,
                                   Communication communication,
                                   MemoryResource& buffers,
                                   StreamView stream)
    : layout_(shards.layout()), shards_(shards), overlap_(overlap), communication_(communication) {
  if (gathers(shards.plan())) {
    gathered_buffers_ =
        std::make_unique<GatherBuffers>(layout_, overlap, communication, buffers, stream);
  }
  view_parts();
}

void ParameterGathers::view_parts() {
  for (int part = 0; part < layout_.parts(); ++part) {
    std::vector<TensorView> views;
    for (const int parameter : layout_.part_parameters(part)) {
      if (parameter == FlatLayout::in_tiles) {
        views.emplace_back();
        continue;
      }
      const Placement& place = layout_.parameter(parameter);
      const TensorView values = whole(place.segment) ? shards_.parameters(place.segment)
                                                     : gathered_buffers_->view(place.segment);
      views.push_back(values.part(place.offset, place.shape));
    }
    views_.push_back(std::move(views));
    std::vector<int>& gathered = gathered_.emplace_back();
    for (const int index : layout_.part_segments(part)) {
      if (!whole(index)) gathered.push_back(index);
    }
  }
}

/// Makes a segment whole in its buffer, unless it is there.
void ParameterGathers::gather(int segment, StreamView stream) {
  if (gathered_buffers_->holds(segment)) return;
  if (!on_disk(segment))
    return gathered_buffers_->gather(segment, shards_.own_parameters(segment), stream);
  communication_.follow(stream);
  DiskShards* const disk = shards_.disk();
  const TensorView shard = disk->take_parameters(segment);
  communication_.host().run([disk, segment] { disk->wait_for_parameters(segment); });
  communication_.follow_host();
  gathered_buffers_->gather(segment, shard, stream);
  communication_.host_follows();
  communication_.host().run_always([disk, segment] { disk->release_parameters(segment, false); });
  gathered_buffers_->set_filled(segment, communication_.host_now());
}

/// Begins to read from disk what the next parts need. One buffer is left for a gather, and one for
/// what is updated early.
void ParameterGathers::read_ahead() {
  if (shards_.disk() == nullptr) return;
  const Offload& offload = shards_.offload();
  int left = offload.parameter_buffers - (updates_early(offload) ? 2 : 1);
  for (std::int64_t skipped = 0;; ++skipped) {
    const int part = schedule_.upcoming(skipped);
    if (part == PartSchedule::unknown) return;
    for (const int index : gathered_[static_cast<std::size_t>(part)]) {
      if (!on_disk(index) || gathered_buffers_->holds(index)) continue;
      if (left-- <= 0) return;
      shards_.disk()->expect_parameters(index);
    }
  }
}

std::span<const TensorView> ParameterGathers::acquire(int part, StreamView stream) {
  schedule_.advance(part);
  const std::vector<int>& gathered = gathered_[static_cast<std::size_t>(part)];
  for (const int index : gathered) gather(index, stream);
  in_use_.insert(in_use_.end(), gathered.begin(), gathered.end());
  prefetch(stream);
  read_ahead();
  for (const int index : gathered) gathered_buffers_->wait(index, stream);
  return views_[static_cast<std::size_t>(part)];
}

/// Begins to gather what the next part needs, within the limits.
void ParameterGathers::prefetch(StreamView stream) {
  const int next = schedule_.upcoming(0);
  if (!overlap_.enabled || next == PartSchedule::unknown) return;
  std::int64_t ahead_numel = 0;
  for (const int index : gathered_[static_cast<std::size_t>(next)]) {
    if (gathered_buffers_->holds(index)) continue;
    if (ahead_numel >= overlap_.prefetch_numel) return;
    if (gathered_buffers_->displaces_any(index, in_use_) ||
        gathered_buffers_->live_numel_with(index) > overlap_.live_numel) {
      continue;
    }
    gather(index, stream);
    ahead_numel += layout_.segment(index).numel;
  }
}

void ParameterGathers::release(int part) {
  for (const int index : gathered_[static_cast<std::size_t>(part)]) {
    std::erase(in_use_, index);
    if (!reused_soon(index)) gathered_buffers_->drop(index);
  }
}

/// Whether no more elements than the limit are gathered before the segment's next use, or that use
/// is not known.
bool ParameterGathers::reused_soon(int segment) const {
  std::int64_t distance_numel = 0;
  for (std::int64_t skipped = 0; distance_numel <= overlap_.reuse_numel; ++skipped) {
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

void ParameterGathers::gather_whole(int segment, StreamView stream) {
  communication_.follow(stream);
  communication_.communicator().all_gather(shards_.own_parameters(segment),
                                           shards_.parameters(segment), communication_.stream());
}

void ParameterGathers::loaded(int segment, StreamView stream) {
  whole(segment) ? gather_whole(segment, stream) : gathered_buffers_->drop(segment);
}

void ParameterGathers::publish(int segment, StreamView stream) {
  if (!whole(segment)) {
    gathered_buffers_->drop(segment);
  } else if (shards_.shards_updates()) {
    gather_whole(segment, stream);
  }
}

}  // namespace dstrain::zero
