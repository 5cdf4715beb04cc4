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

/// Segments of which a unit has one at most, in use by it alone: those of a parameter group, and
/// tiles of one.
using Turn = std::pair<int, bool>;
Turn turn_of(const Segment& segment) {
  return {segment.group, segment.tile};
}

/// The buffers that they take in turns.
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
    return static_cast<int>(buffers_.size()) - 1;
  };
  std::map<Turn, std::vector<int>> in_turns;
  for (const auto& [turn, buffers] : turns(layout)) {
    for (int i = 0; i < buffers.count(overlap); ++i)
      in_turns[turn].push_back(add_buffer(buffers.bytes));
  }
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent) {
      buffer_index_.push_back(-1);
    } else if (segment.shared) {
      buffer_index_.push_back(add_buffer(bytes_of(segment)));
    } else {
      // Units and tiles that follow each other, in either direction, have different buffers.
      std::vector<int>& buffers = in_turns.at(turn_of(segment));
      buffer_index_.push_back(buffers.front());
      std::rotate(buffers.begin(), buffers.begin() + 1, buffers.end());
    }
  }
}

const GatherBuffers::GatherBuffer& GatherBuffers::buffer_of(int segment) const {
  const int index = buffer_index_[static_cast<std::size_t>(segment)];
  return buffers_[static_cast<std::size_t>(index)];
}

GatherBuffers::GatherBuffer& GatherBuffers::buffer_of(int segment) {
  const int index = buffer_index_[static_cast<std::size_t>(segment)];
  return buffers_[static_cast<std::size_t>(index)];
}

TensorView GatherBuffers::view(int segment) const {
  const Segment& of = layout_.segment(segment);
  return memory_.block().cut(buffer_of(segment).offset, of.dtype, {of.numel});
}

void GatherBuffers::gather(int segment, TensorView shard, StreamView stream) {
  GatherBuffer& buffer = buffer_of(segment);
  if (buffer.tenant == segment) return;
  communication_.follow(stream);  // the tenant before was in use until now
  const TensorView whole = view(segment);
  if (shard.device() != whole.device()) {  // the device gets its own part first
    const TensorView own = own_shard(layout_.segment(segment), communication_.rank(), whole);
    ops::convert(shard, own, communication_.stream());
    shard = own;
  }
  communication_.communicator().all_gather(shard, whole, communication_.stream());
  buffer.filled = communication_.now();
  buffer.tenant = segment;
}

void GatherBuffers::wait(int segment, StreamView stream) {
  communication_.wait(buffer_of(segment).filled, stream);
}

void GatherBuffers::drop(int segment) {
  GatherBuffer& buffer = buffer_of(segment);
  if (buffer.tenant == segment) buffer.tenant = nobody;
}

std::int64_t GatherBuffers::live_numel_with(int segment) const {
  std::int64_t numel = layout_.segment(segment).numel;
  for (const GatherBuffer& buffer : buffers_) {
    if (buffer.tenant != nobody && &buffer != &buffer_of(segment)) {
      numel += layout_.segment(buffer.tenant).numel;
    }
  }
  return numel;
}

bool GatherBuffers::displaces_any(int segment, std::span<const int> others) const {
  const int buffer = buffer_index_[static_cast<std::size_t>(segment)];
  return std::any_of(others.begin(), others.end(), [&](int other) {
    return other != segment && buffer_index_[static_cast<std::size_t>(other)] == buffer;
  });
}

}  // namespace dstrain::zero
