#pragma once
#include <array>
#include <optional>

#include "runtime/device/event.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::zero {

/// Buffers of the host, used in turn, for values that cross between a device and the host: one is
/// filled while the other is emptied.
class StagingRing {
 public:
  struct Slot {
    HostView memory;            ///< u8
    std::optional<Event> busy;  ///< the point from which on it may be filled again; none: now
  };
  /// `bytes`: of each.
  StagingRing(Bytes bytes, MemoryResource& memory, StreamView stream)
      : memory_(count * bytes, memory, stream) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].memory = memory_.block().part(static_cast<Bytes>(i) * bytes, {bytes});
    }
  }
  static Bytes all_bytes(Bytes bytes) { return count * bytes; }

  /// The one that was used longest ago.
  Slot& next() {
    turn_ = (turn_ + 1) % slots_.size();
    return slots_[turn_];
  }

 private:
  static constexpr Bytes count = 2;
  HostBuffer memory_;
  std::array<Slot, count> slots_;
  std::size_t turn_ = 0;
};

}  // namespace dstrain::zero
