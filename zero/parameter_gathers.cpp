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
  for (const model::PartId part : layout_.parts()) {
    std::vector<TensorView> views;
    for (const ParameterId parameter : layout_.part_parameters(part)) {
      if (parameter == FlatLayout::in_tiles) {
        views.emplace_back();
        continue;
      }
      const Placement& placement = layout_.parameter(parameter);
      const TensorView values = whole(placement.segment)
                                    ? shards_.parameters(placement.segment)
                                    : gathered_buffers_->view(placement.segment);
      views.push_back(values.part(placement.offset, placement.shape));
    }
    views_.push_back(std::move(views));
    std::vector<SegmentId>& gathered = gathered_.emplace_back();
    for (const SegmentId segment : layout_.part_segments(part)) {
      if (!whole(segment)) gathered.push_back(segment);
    }
  }
}

/// Makes a segment whole in its buffer, unless it is there.
void ParameterGathers::gather(SegmentId segment, StreamView stream) {
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
    const std::optional<model::PartId> part = schedule_.upcoming(skipped);
    if (!part) return;
    for (const SegmentId segment : gathered_[*part]) {
      if (!on_disk(segment) || gathered_buffers_->holds(segment)) continue;
      if (left-- <= 0) return;
      shards_.disk()->expect_parameters(segment);
    }
  }
}

std::span<const TensorView> ParameterGathers::acquire(model::PartId part, StreamView stream) {
  schedule_.advance(part);
  const std::vector<SegmentId>& gathered = gathered_[part];
  for (const SegmentId segment : gathered) gather(segment, stream);
  in_use_.insert(in_use_.end(), gathered.begin(), gathered.end());
  prefetch(stream);
  read_ahead();
  for (const SegmentId segment : gathered) gathered_buffers_->wait(segment, stream);
  return views_[part];
}

/// Begins to gather what the next part needs, within the limits.
void ParameterGathers::prefetch(StreamView stream) {
  const std::optional<model::PartId> next = schedule_.upcoming(0);
  if (!overlap_.enabled || !next) return;
  std::int64_t ahead_numel = 0;
  for (const SegmentId segment : gathered_[*next]) {
    if (gathered_buffers_->holds(segment)) continue;
    if (ahead_numel >= overlap_.prefetch_numel) return;
    if (gathered_buffers_->displaces_any(segment, in_use_) ||
        gathered_buffers_->live_numel_with(segment) > overlap_.live_numel) {
      continue;
    }
    gather(segment, stream);
    ahead_numel += layout_.segment(segment).numel;
  }
}

void ParameterGathers::release(model::PartId part) {
  for (const SegmentId segment : gathered_[part]) {
    std::erase(in_use_, segment);
    if (!reused_soon(segment)) gathered_buffers_->drop(segment);
  }
}

/// Whether no more elements than the limit are gathered before the segment's next use, or that use
/// is not known.
bool ParameterGathers::reused_soon(SegmentId segment) const {
  std::int64_t distance_numel = 0;
  for (std::int64_t skipped = 0; distance_numel <= overlap_.reuse_numel; ++skipped) {
    const std::optional<model::PartId> part = schedule_.upcoming(skipped);
    if (!part) return true;
    const std::vector<SegmentId>& gathered = gathered_[*part];
    if (std::ranges::find(gathered, segment) != gathered.end()) return true;
    for (const SegmentId other : gathered) distance_numel += layout_.segment(other).numel;
  }
  return false;
}

void ParameterGathers::gather_whole(SegmentId segment, StreamView stream) {
  communication_.follow(stream);
  communication_.communicator().all_gather(shards_.own_parameters(segment),
                                           shards_.parameters(segment), communication_.stream());
}

void ParameterGathers::loaded(SegmentId segment, StreamView stream) {
  whole(segment) ? gather_whole(segment, stream) : gathered_buffers_->drop(segment);
}

void ParameterGathers::publish(SegmentId segment, StreamView stream) {
  if (!whole(segment)) {
    gathered_buffers_->drop(segment);
  } else if (shards_.shards_updates()) {
    gather_whole(segment, stream);
  }
}

}  // namespace dstrain::zero
