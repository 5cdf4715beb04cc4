#pragma once
#include <array>
#include <optional>

#include "runtime/device/event.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::zero {

/// One buffer of a StagingRing.
struct StagingBuffer {
  HostView memory;            ///< u8
  std::optional<Event> busy;  ///< the point after which it may be filled again; none: now
};

/// Host buffers, used in turns, for values that are copied between a device and the host: one is
/// filled while the other is emptied.
class StagingRing {
 public:
  /// `bytes`: of each buffer.
  StagingRing(Bytes bytes, MemoryResource& memory, StreamView stream)
      : memory_(count * bytes, memory, stream) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].memory = memory_.block().part(static_cast<Bytes>(i) * bytes, {bytes});
    }
  }
  static Bytes all_bytes(Bytes bytes) { return count * bytes; }

  /// The buffer that was used longest ago.
  StagingBuffer& next() {
    turn_ = (turn_ + 1) % buffers_.size();
    return buffers_[turn_];
  }

 private:
  static constexpr Bytes count = 2;
  HostBuffer memory_;
  std::array<StagingBuffer, count> buffers_;
  std::size_t turn_ = 0;
};

}  // namespace dstrain::zero
