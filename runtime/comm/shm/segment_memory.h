#pragma once
#include <memory>
#include <optional>

#include "runtime/comm/shm/segment.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::comm {

/// A rank's heap of a segment as a memory resource. Large blocks use pages of 2 MiB if the system
/// has them for shared memory, and their pages return to the system when they are freed.
class SegmentMemory final : public MemoryResource {
 public:
  /// Blocks that are freed on a worker stream may outlive this until the stream runs the free: the
  /// segment stays mapped until then.
  SegmentMemory(std::shared_ptr<const Segment> segment, int rank);
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

  /// The offset of `address` in the heap; nothing if it is in other memory.
  [[nodiscard]] std::optional<Bytes> offset_of(const std::byte* address) const;

 private:
  struct Heap;
  std::shared_ptr<Heap> heap_;  // shared with frees that streams have not run yet
};

}  // namespace dstrain::comm
