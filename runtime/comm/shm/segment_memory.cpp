#include "runtime/comm/shm/segment_memory.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include <sys/mman.h>

#include "runtime/base/error.h"
#include "runtime/comm/shm/free_ranges.h"

namespace dstrain::comm {
namespace {

constexpr Bytes huge_page = 2 * mebibyte;
constexpr Bytes cache_line = 64;

Bytes alignment_of(Bytes bytes) {
  return bytes >= huge_page ? huge_page : cache_line;
}

/// Returns the bytes that a block occupies.
Bytes block_bytes(Bytes bytes) {
  return round_up(std::max<Bytes>(bytes, 1), alignment_of(bytes));
}

}  // namespace

struct SegmentMemory::Heap {
  Heap(std::shared_ptr<const Segment> owner, int rank)
      : segment(std::move(owner)),
        memory(segment->heap(rank)),
        free(static_cast<Bytes>(memory.size())) {}

  void give_back(std::byte* address, Bytes bytes) {
    const Bytes block = block_bytes(bytes);
    // Peers that failed may still read it: they find zeros, because the range stays mapped.
    if (bytes >= huge_page) ::madvise(address, static_cast<std::size_t>(block), MADV_REMOVE);
    const std::lock_guard lock(mutex);
    free.give_back(address - memory.data(), block);
  }

  std::shared_ptr<const Segment> segment;
  std::span<std::byte> memory;
  std::mutex mutex;
  FreeRanges free;
};

SegmentMemory::SegmentMemory(std::shared_ptr<const Segment> segment, int rank)
    : heap_(std::make_shared<Heap>(std::move(segment), rank)) {}

std::byte* SegmentMemory::allocate(Bytes bytes, StreamView /*stream*/) {
  const auto heap_bytes = static_cast<Bytes>(heap_->memory.size());
  DSTRAIN_CHECK(bytes >= 0, "{} bytes", bytes);
  const std::lock_guard lock(heap_->mutex);
  const std::optional<Bytes> begin = bytes <= heap_bytes
                                         ? heap_->free.take(block_bytes(bytes), alignment_of(bytes))
                                         : std::nullopt;
  if (!begin) {
    fail(ErrorCode::out_of_memory,
         "no room for {} in memory shared with the other ranks: {} of {} are in use; the whole is "
         "what the machine has, or what ulimit -v and ulimit -f leave",
         format_bytes(bytes), format_bytes(heap_bytes - heap_->free.free_bytes()),
         format_bytes(heap_bytes));
  }
  std::byte* const address = heap_->memory.data() + *begin;
  if (bytes >= huge_page) {  // a hint that may be refused
    ::madvise(address, static_cast<std::size_t>(block_bytes(bytes)), MADV_HUGEPAGE);
  }
  return address;
}

void SegmentMemory::deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept {
  after_work_on(stream, [heap = heap_, address, bytes] { heap->give_back(address, bytes); });
}

std::optional<Bytes> SegmentMemory::offset_of(const std::byte* address) const {
  const std::byte* const begin = heap_->memory.data();
  const std::less<> before;
  if (before(address, begin) || !before(address, begin + heap_->memory.size())) {
    return std::nullopt;
  }
  return address - begin;
}

}  // namespace dstrain::comm
