#include "zero/gather_buffers.h"

#include <algorithm>
#include <map>

#include "runtime/ops/convert.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

Bytes bytes_of(const Segment& segment) {
  return segment.numel * size_of(segment.dtype);
}

/// The segments of which a unit uses at most one, and alone: those of a parameter group, or tiles
/// of one.
using Turn = std::pair<optim::ParameterGroupId, bool>;
Turn turn_of(const Segment& segment) {
  return {segment.parameter_group, segment.tile};
}

/// The buffers that these segments use in turn.
struct AlternatingBuffers {
  Bytes bytes = 0;  ///< of each
  std::int64_t largest = 0;
  int segments = 0;
  [[nodiscard]] int count(const Overlap& overlap) const {
    const bool ahead = overlap.enabled && overlap.prefetch_numel > 0 &&
                       2 * largest <= overlap.live_numel && segments > 1;
    return ahead ? 2 : 1;
  }
};

std::map<Turn, AlternatingBuffers> turns(const FlatLayout& layout) {
  std::map<Turn, AlternatingBuffers> all;
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent || segment.shared) continue;
    AlternatingBuffers& buffers = all[turn_of(segment)];
    buffers.bytes = std::max(buffers.bytes, bytes_of(segment));
    buffers.largest = std::max(buffers.largest, segment.numel);
    ++buffers.segments;
  }
  return all;
}

}  // namespace

Bytes GatherBuffers::bytes(const FlatLayout& layout, const Overlap& overlap) {
  Bytes bytes = 0;
  for (const auto& [turn, buffers] : turns(layout)) bytes += buffers.count(overlap) * buffers.bytes;
  for (const Segment& segment : layout.segments()) {
    if (!segment.persistent && segment.shared) bytes += bytes_of(segment);
  }
  return bytes;
}

GatherBuffers::GatherBuffers(const FlatLayout& layout,
                             const Overlap& overlap,
                             Communication communication,
                             MemoryResource& memory,
                             StreamView stream)
    : layout_(layout),
      communication_(communication),
      memory_(bytes(layout, overlap), memory, stream) {
  Bytes next = 0;
  const auto add_buffer = [&](Bytes bytes) {
    buffers_.push_back({.offset = next});
    next += bytes;
    return buffers_.size() - 1;
  };
  std::map<Turn, std::vector<std::size_t>> in_turns;
  for (const auto& [turn, buffers] : turns(layout)) {
    for (int i = 0; i < buffers.count(overlap); ++i)
      in_turns[turn].push_back(add_buffer(buffers.bytes));
  }
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent) {
      buffer_index_.push_back(std::nullopt);
    } else if (segment.shared) {
      buffer_index_.push_back(add_buffer(bytes_of(segment)));
    } else {
      // Consecutive units and tiles, in either direction, have different buffers.
      std::vector<std::size_t>& buffers = in_turns.at(turn_of(segment));
      buffer_index_.push_back(buffers.front());
      std::rotate(buffers.begin(), buffers.begin() + 1, buffers.end());
    }
  }
}

const GatherBuffers::GatherBuffer& GatherBuffers::buffer_of(SegmentId segment) const {
  return buffers_.at(buffer_index_[segment].value());
}

GatherBuffers::GatherBuffer& GatherBuffers::buffer_of(SegmentId segment) {
  return buffers_.at(buffer_index_[segment].value());
}

TensorView GatherBuffers::view(SegmentId segment) const {
  const Segment& of = layout_.segment(segment);
  return memory_.block().cut(buffer_of(segment).offset, of.dtype, {of.numel});
}

void GatherBuffers::gather(SegmentId segment, TensorView shard, StreamView stream) {
  GatherBuffer& buffer = buffer_of(segment);
  if (buffer.held == segment) return;
  communication_.follow(stream);  // the segment before was in use until now
  const TensorView whole = view(segment);
  if (shard.device() != whole.device()) {  // the device gets its own part first
    const TensorView own = own_shard(layout_.segment(segment), communication_.rank(), whole);
    ops::convert(shard, own, communication_.stream());
    shard = own;
  }
  communication_.communicator().all_gather(shard, whole, communication_.stream());
  buffer.filled = communication_.now();
  buffer.held = segment;
}

void GatherBuffers::wait(SegmentId segment, StreamView stream) {
  communication_.wait(buffer_of(segment).filled, stream);
}

void GatherBuffers::drop(SegmentId segment) {
  GatherBuffer& buffer = buffer_of(segment);
  if (buffer.held == segment) buffer.held.reset();
}

std::int64_t GatherBuffers::live_numel_with(SegmentId segment) const {
  std::int64_t numel = layout_.segment(segment).numel;
  for (const GatherBuffer& buffer : buffers_) {
    if (buffer.held && &buffer != &buffer_of(segment)) {
      numel += layout_.segment(*buffer.held).numel;
    }
  }
  return numel;
}

bool GatherBuffers::displaces_any(SegmentId segment, std::span<const SegmentId> others) const {
  return std::ranges::any_of(others, [&](SegmentId other) {
    return other != segment && buffer_index_[other] == buffer_index_[segment];
  });
}

}  // namespace dstrain::zero
