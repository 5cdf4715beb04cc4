#include "zero/gather_slots.h"

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

/// The slots that they take in turns.
struct TurnSlots {
  Bytes bytes = 0;  ///< of each
  std::int64_t largest = 0;
  int segments = 0;
  [[nodiscard]] int count(const Overlap& overlap) const {
    const bool ahead = overlap.enabled && overlap.prefetch_numel > 0 &&
                       2 * largest <= overlap.live_numel && segments > 1;
    return ahead ? 2 : 1;
  }
};

std::map<Turn, TurnSlots> turns(const FlatLayout& layout) {
  std::map<Turn, TurnSlots> all;
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent || segment.shared) continue;
    TurnSlots& slots = all[turn_of(segment)];
    slots.bytes = std::max(slots.bytes, bytes_of(segment));
    slots.largest = std::max(slots.largest, segment.numel);
    ++slots.segments;
  }
  return all;
}

}  // namespace

Bytes GatherSlots::bytes(const FlatLayout& layout, const Overlap& overlap) {
  Bytes bytes = 0;
  for (const auto& [turn, slots] : turns(layout)) bytes += slots.count(overlap) * slots.bytes;
  for (const Segment& segment : layout.segments()) {
    if (!segment.persistent && segment.shared) bytes += bytes_of(segment);
  }
  return bytes;
}

GatherSlots::GatherSlots(const FlatLayout& layout,
                         const Overlap& overlap,
                         Communication communication,
                         MemoryResource& memory,
                         StreamView stream)
    : layout_(layout),
      communication_(communication),
      memory_(bytes(layout, overlap), memory, stream) {
  Bytes next = 0;
  const auto add_slot = [&](Bytes bytes) {
    slots_.push_back({.offset = next});
    next += bytes;
    return static_cast<int>(slots_.size()) - 1;
  };
  std::map<Turn, std::vector<int>> in_turns;
  for (const auto& [turn, slots] : turns(layout)) {
    for (int i = 0; i < slots.count(overlap); ++i) in_turns[turn].push_back(add_slot(slots.bytes));
  }
  for (const Segment& segment : layout.segments()) {
    if (segment.persistent) {
      slot_index_.push_back(-1);
    } else if (segment.shared) {
      slot_index_.push_back(add_slot(bytes_of(segment)));
    } else {
      // Units and tiles that follow each other, in either direction, have different slots.
      std::vector<int>& slots = in_turns.at(turn_of(segment));
      slot_index_.push_back(slots.front());
      std::rotate(slots.begin(), slots.begin() + 1, slots.end());
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
  const Segment& of = layout_.segment(segment);
  return memory_.block().cut(slot_of(segment).offset, of.dtype, {of.numel});
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
