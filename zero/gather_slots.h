#pragma once
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/buffer.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// The fixed places where stage 3 makes sharded segments whole. Units run one after another, so
/// the segments that one unit alone uses share one slot; a shared segment has a slot of its own.
/// A slot keeps its tenant until another moves in, so that a unit whose backward follows its
/// forward is gathered once.
class GatherSlots {
 public:
  GatherSlots(const FlatLayout& layout, MemoryResource& memory, StreamView stream);

  /// Bytes that the slots of `layout` take.
  static Bytes bytes(const FlatLayout& layout);

  /// The whole segment, whatever the slot holds now.
  [[nodiscard]] TensorView view(int segment) const;
  /// Makes `segment` whole from every rank's `shard`, unless its slot still holds it.
  void gather(int segment, TensorView shard, comm::Communicator& communicator, StreamView stream);
  /// The shards have changed: every slot is empty.
  void invalidate();

 private:
  struct Slot {
    std::int64_t offset = 0;  ///< elements from the start of the memory
    int tenant = -1;          ///< segment held now
  };
  const FlatLayout& layout_;
  std::vector<Slot> slots_;
  std::vector<int> slot_of_;  ///< per segment; -1: never gathered
  Buffer memory_;
};

}  // namespace dstrain::zero
