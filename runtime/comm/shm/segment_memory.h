#pragma once
#include <memory>
#include <optional>

#include "runtime/comm/shm/segment.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::comm {

/// A rank's heap of a segment as a memory resource. Large blocks lie in pages of 2 MiB where the
/// system gives them to shared memory, and their pages go back to it when they are freed.
class SegmentMemory final : public MemoryResource {
 public:
  /// Blocks that are freed on a worker stream may outlive this by the time the stream takes: the
  /// segment stays mapped until then.
  SegmentMemory(std::shared_ptr<const Segment> segment, int rank);
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

  /// How far into the heap `address` lies; nothing when it is memory from elsewhere.
  [[nodiscard]] std::optional<Bytes> offset_of(const std::byte* address) const;

 private:
  struct Heap;
  std::shared_ptr<Heap> heap_;  // shared with the frees that streams have yet to do
};

}  // namespace dstrain::comm
