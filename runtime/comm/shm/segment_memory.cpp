#include "runtime/comm/shm/segment_memory.h"

#include <algorithm>

#include <sys/mman.h>

#include "runtime/base/check.h"
#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

constexpr Bytes huge_page = 2 * mebibyte;
constexpr Bytes cache_line = 64;

Bytes alignment_of(Bytes bytes) {
  return bytes >= huge_page ? huge_page : cache_line;
}

/// What a block takes up.
Bytes block_bytes(Bytes bytes) {
  return round_up(std::max<Bytes>(bytes, 1), alignment_of(bytes));
}

}  // namespace

SegmentMemory::SegmentMemory(std::span<std::byte> heap)
    : heap_(heap), free_(static_cast<Bytes>(heap.size())) {}

std::byte* SegmentMemory::allocate(Bytes bytes, StreamView /*stream*/) {
  const auto heap_bytes = static_cast<Bytes>(heap_.size());
  DSTRAIN_CHECK(bytes >= 0, "{} bytes", bytes);
  const std::lock_guard lock(mutex_);
  const std::optional<Bytes> begin =
      bytes <= heap_bytes ? free_.take(block_bytes(bytes), alignment_of(bytes)) : std::nullopt;
  if (!begin) {
    fail(ErrorCode::out_of_memory,
         "no room for {} in memory shared with the other ranks: {} of {} are in use; the whole is "
         "what the machine has, or what ulimit -v and ulimit -f leave",
         format_bytes(bytes), format_bytes(heap_bytes - free_.free_bytes()),
         format_bytes(heap_bytes));
  }
  std::byte* const address = heap_.data() + *begin;
  if (bytes >= huge_page) {  // a hint: may be refused
    ::madvise(address, static_cast<std::size_t>(block_bytes(bytes)), MADV_HUGEPAGE);
  }
  return address;
}

void SegmentMemory::deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept {
  stream.launch_always([this, address, bytes] { release(address, bytes); });
}

void SegmentMemory::release(std::byte* address, Bytes bytes) {
  const Bytes block = block_bytes(bytes);
  // Peers that failed may still look at it: they find zeros, as the range stays mapped.
  if (bytes >= huge_page) ::madvise(address, static_cast<std::size_t>(block), MADV_REMOVE);
  const std::lock_guard lock(mutex_);
  free_.give_back(address - heap_.data(), block);
}

std::optional<Bytes> SegmentMemory::offset_of(const std::byte* address) const {
  const std::byte* const begin = heap_.data();
  if (std::less<>()(address, begin) || !std::less<>()(address, begin + heap_.size())) {
    return std::nullopt;
  }
  return address - begin;
}

}  // namespace dstrain::comm
