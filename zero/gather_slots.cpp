#include "zero/gather_slots.h"

#include <algorithm>
#include <array>

#include "runtime/ops/convert.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

/// The slots for segments that one unit alone uses, in turns: for its tiles, or for the others.
struct CommonSlots {
  std::int64_t numel = 0;  ///< of each
  int count = 1;
};

CommonSlots common_slots(const FlatLayout& layout, const Overlap& overlap, bool tiles) {
  CommonSlots common;
  int segments = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent || segment.shared || segment.tile != tiles) continue;
    common.numel = std::max(common.numel, segment.numel);
    ++segments;
  }
  const bool ahead = overlap.enabled && overlap.prefetch_numel > 0 &&
                     2 * common.numel <= overlap.live_numel && segments > 1;
  common.count = ahead ? 2 : 1;
  return common;
}

}  // namespace

Bytes GatherSlots::bytes(const FlatLayout& layout, const Overlap& overlap) {
  std::int64_t numel = 0;
  for (const bool tiles : {false, true}) {
    const CommonSlots common = common_slots(layout, overlap, tiles);
    numel += common.count * common.numel;
  }
  for (const Segment& segment : layout.segments()) {
    if (!segment.persistent && segment.shared) numel += segment.numel;
  }
  return numel * size_of(layout.dtype());
}

GatherSlots::GatherSlots(const FlatLayout& layout,
                         const Overlap& overlap,
                         Communication communication,
                         MemoryResource& memory,
                         StreamView stream)
    : layout_(layout),
      communication_(communication),
      memory_(bytes(layout, overlap), memory, stream) {
  std::int64_t next = 0;
  const auto add_slot = [&](std::int64_t numel) {
    slots_.push_back({.offset = next});
    next += numel;
    return static_cast<int>(slots_.size()) - 1;
  };
  std::array<std::vector<int>, 2> common;  // slots for the segments of units, and for tiles
  for (const bool tiles : {false, true}) {
    const CommonSlots slots = common_slots(layout, overlap, tiles);
    for (int i = 0; i < slots.count; ++i) common.at(tiles).push_back(add_slot(slots.numel));
  }
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent) {
      slot_index_.push_back(-1);
    } else if (segment.shared) {
      slot_index_.push_back(add_slot(segment.numel));
    } else {
      // Units and tiles that follow each other, in either direction, have different slots.
      std::vector<int>& shared = common.at(segment.tile);
      slot_index_.push_back(shared.front());
      std::rotate(shared.begin(), shared.begin() + 1, shared.end());
    }
  }
}

const GatherSlots::Slot& GatherSlots::slot_of(int segment) const {
  const int index = slot_index_[static_cast<std::size_t>(segment)];
  return slots_[static_cast<std::size_t>(index)];
}

GatherSlots::Slot& GatherSlots::slot_of(int segment) {
  const int index = slot_index_[static_cast<std::size_t>(segment)];
  return slots_[static_cast<std::size_t>(index)];
}

TensorView GatherSlots::view(int segment) const {
  const Bytes begin = slot_of(segment).offset * size_of(layout_.dtype());
  return memory_.block().cut(begin, layout_.dtype(), {layout_.segment(segment).numel});
}

void GatherSlots::gather(int segment, TensorView shard, StreamView stream) {
  Slot& slot = slot_of(segment);
  if (slot.tenant == segment) return;
  communication_.follow(stream);  // the tenant before was in use until now
  const TensorView whole = view(segment);
  if (shard.device() != whole.device()) {  // the device gets its own part first
    const TensorView own = own_part(layout_.segment(segment), communication_.rank(), whole);
    ops::convert(shard, own, communication_.stream());
    shard = own;
  }
  communication_.communicator().all_gather(shard, whole, communication_.stream());
  slot.filled = communication_.now();
  slot.tenant = segment;
}

void GatherSlots::wait(int segment, StreamView stream) {
  communication_.wait(slot_of(segment).filled, stream);
}

void GatherSlots::drop(int segment) {
  Slot& slot = slot_of(segment);
  if (slot.tenant == segment) slot.tenant = nobody;
}

std::int64_t GatherSlots::live_numel_with(int segment) const {
  std::int64_t numel = layout_.segment(segment).numel;
  for (const Slot& slot : slots_) {
    if (slot.tenant != nobody && &slot != &slot_of(segment)) {
      numel += layout_.segment(slot.tenant).numel;
    }
  }
  return numel;
}

bool GatherSlots::displaces_any(int segment, std::span<const int> others) const {
  const int slot = slot_index_[static_cast<std::size_t>(segment)];
  return std::any_of(others.begin(), others.end(), [&](int other) {
    return other != segment && slot_index_[static_cast<std::size_t>(other)] == slot;
  });
}

}  // namespace dstrain::zero
