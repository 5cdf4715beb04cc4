#pragma once
#include <mutex>
#include <optional>
#include <span>

#include "runtime/comm/shm/free_ranges.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::comm {

/// A rank's own part of a segment as a memory resource. Large blocks lie in pages of 2 MiB where
/// the system gives them to shared memory, and their pages go back to it when they are freed.
class SegmentMemory final : public MemoryResource {
 public:
  /// `heap` starts at a multiple of 2 MiB, reads as zeros and outlives this.
  explicit SegmentMemory(std::span<std::byte> heap);
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

  /// How far into the heap `address` lies; nothing when it is memory from elsewhere.
  [[nodiscard]] std::optional<Bytes> offset_of(const std::byte* address) const;

 private:
  void release(std::byte* address, Bytes bytes);

  std::span<std::byte> heap_;
  std::mutex mutex_;
  FreeRanges free_;
};

}  // namespace dstrain::comm
