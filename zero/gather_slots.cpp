#include "zero/gather_slots.h"

#include <algorithm>

namespace dstrain::zero {
namespace {

/// Elements of the slot that the segments used by one unit alone share.
std::int64_t common_slot_numel(const FlatLayout& layout) {
  std::int64_t largest = 0;
  for (const Segment& segment : layout.segments()) {
    if (!segment.persistent && !segment.shared) largest = std::max(largest, segment.numel);
  }
  return largest;
}

}  // namespace

Bytes GatherSlots::bytes(const FlatLayout& layout) {
  std::int64_t numel = common_slot_numel(layout);
  for (const Segment& segment : layout.segments()) {
    if (!segment.persistent && segment.shared) numel += segment.numel;
  }
  return numel * size_of(layout.dtype());
}

GatherSlots::GatherSlots(const FlatLayout& layout, MemoryResource& memory, StreamView stream)
    : layout_(layout), slots_{Slot{}}, memory_(bytes(layout), memory, stream) {
  std::int64_t next = common_slot_numel(layout);
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent) {
      slot_of_.push_back(-1);
    } else if (segment.shared) {
      slot_of_.push_back(static_cast<int>(slots_.size()));
      slots_.push_back({next, -1});
      next += segment.numel;
    } else {
      slot_of_.push_back(0);
    }
  }
}

TensorView GatherSlots::view(int segment) const {
  const int slot = slot_of_[static_cast<std::size_t>(segment)];
  const std::int64_t offset = slots_[static_cast<std::size_t>(slot)].offset;
  return {memory_.bytes().data() + offset * size_of(layout_.dtype()),
          layout_.dtype(),
          {layout_.segment(segment).numel}};
}

void GatherSlots::gather(int segment,
                         TensorView shard,
                         comm::Communicator& communicator,
                         StreamView stream) {
  Slot& slot = slots_[static_cast<std::size_t>(slot_of_[static_cast<std::size_t>(segment)])];
  if (slot.tenant == segment) return;
  communicator.all_gather(shard, view(segment), stream);
  slot.tenant = segment;
}

void GatherSlots::invalidate() {
  for (Slot& slot : slots_) slot.tenant = -1;
}

}  // namespace dstrain::zero
