#include "runtime/device/memory_resource.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include <sys/mman.h>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream_access.h"

namespace dstrain {
namespace {

constexpr Bytes huge_page = 2 * mebibyte;
constexpr Bytes page = 4096;
constexpr Bytes cache_line = 64;

Bytes alignment_of(Bytes bytes) {
  if (bytes >= huge_page) return huge_page;
  return bytes >= page ? page : cache_line;
}

}  // namespace

void MemoryResource::after_work_on(StreamView stream, std::function<void()> release) {
  if (stream.device().kind == DeviceKind::cpu) {
    cpu_stream(stream).launch_always(std::move(release));
    return;
  }
  stream.wait_until_idle();
  release();
}

std::byte* HostMemory::allocate(Bytes bytes, StreamView /*stream*/) {
  DSTRAIN_CHECK(bytes >= 0 && bytes <= std::numeric_limits<Bytes>::max() - huge_page, "{} bytes",
                bytes);
  const Bytes alignment = alignment_of(bytes);
  const auto size = static_cast<std::size_t>(round_up(std::max<Bytes>(bytes, 1), alignment));
  void* const address = std::aligned_alloc(static_cast<std::size_t>(alignment), size);
  if (address == nullptr) {
    fail(ErrorCode::out_of_memory, "the machine has no {} of memory left", format_bytes(bytes));
  }
  if (alignment == huge_page)
    ::madvise(address, size, MADV_HUGEPAGE);  // a hint that may be refused
  return static_cast<std::byte*>(address);
}

void HostMemory::deallocate(std::byte* address, Bytes /*bytes*/, StreamView stream) noexcept {
  after_work_on(stream, [address] { std::free(address); });
}

void MemoryLedger::Count::add(Bytes bytes) noexcept {
  raise_peak(current.fetch_add(bytes) + bytes);
}

void MemoryLedger::Count::raise_peak(Bytes now) noexcept {
  Bytes seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
}

bool MemoryLedger::try_add(MemoryCategory category, Bytes bytes, Bytes limit) noexcept {
  Bytes before = total_.current.load();
  do {
    if (bytes > limit - before) return false;
  } while (!total_.current.compare_exchange_weak(before, before + bytes));
  total_.raise_peak(before + bytes);
  categories_[static_cast<std::size_t>(category)].add(bytes);
  return true;
}

void MemoryLedger::add(MemoryCategory category, Bytes bytes) noexcept {
  total_.add(bytes);
  categories_[static_cast<std::size_t>(category)].add(bytes);
}

Bytes MemoryLedger::peak(MemoryCategory category) const noexcept {
  return categories_[static_cast<std::size_t>(category)].peak.load();
}

Bytes MemoryLedger::current(MemoryCategory category) const noexcept {
  return categories_[static_cast<std::size_t>(category)].current.load();
}

std::byte* TrackedMemory::allocate(Bytes bytes, StreamView stream) {
  const Bytes limit = options_.limit > 0 ? options_.limit : std::numeric_limits<Bytes>::max();
  if (!ledger_.try_add(options_.category, bytes, limit)) refuse(bytes);
  try {
    return upstream_.allocate(bytes, stream);
  } catch (const Error& error) {
    ledger_.add(options_.category, -bytes);
    const bool full =
        error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::out_of_device_memory;
    if (!full) throw;
    fail(error.code(), "{}; for {} (in use: {})", error.what(), name_of(options_.category),
         in_use());
  } catch (...) {
    ledger_.add(options_.category, -bytes);
    throw;
  }
}

std::string TrackedMemory::in_use() const {
  std::string text;
  for (std::size_t i = 0; i < memory_category_names.size(); ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", name_of(category),
                        format_bytes(ledger_.current(category)));
  }
  return text;
}

void TrackedMemory::refuse(Bytes bytes) const {
  fail(ErrorCode::out_of_device_memory,
       "device memory: {} more for {} does not fit into the budget of {} (in use: {})",
       format_bytes(bytes), name_of(options_.category), format_bytes(options_.limit), in_use());
}

void TrackedMemory::deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept {
  upstream_.deallocate(address, bytes, stream);
  ledger_.add(options_.category, -bytes);
}

}  // namespace dstrain
