#include "tests/stand_in/device_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <signal.h>
#include <sys/mman.h>

namespace dstrain::stand_in {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;
constexpr int nan_byte = 0xFF;

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// One allocation: pages, of which the last bytes are used, between two guard pages that are never
/// accessible.
struct Piece {
  std::byte* pages;
  std::size_t page_bytes;
  std::size_t bytes;
  bool in_reach = false;
};

struct Memory {
  std::mutex mutex;
  std::map<const std::byte*, Piece> pieces;  ///< by the first used byte
  int accesses = 0;
  struct sigaction before {};  ///< handles faults outside device memory
};
/// Never destroyed, because streams still run when a program calls exit().
Memory& memory() {
  static Memory& one = *new Memory;
  return one;
}

thread_local bool has_access = false;

[[noreturn]] void end(const char* reason, const void* address) {
  std::fprintf(stderr, "stand-in for a GPU: %s at %p\n", reason, address);
  std::abort();
}

void protect(Piece& piece, bool in_reach) {
  if (::mprotect(piece.pages, piece.page_bytes, in_reach ? PROT_READ | PROT_WRITE : PROT_NONE)) {
    end("the system has no room for pieces of memory,", piece.pages);
  }
  piece.in_reach = in_reach;
}

/// Returns the allocation that contains the address, with its guard pages, or null. Call with the
/// lock held.
Piece* piece_at(const std::byte* address) {
  for (auto& [begin, piece] : memory().pieces) {
    if (address >= piece.pages - page && address < piece.pages + piece.page_bytes + page)
      return &piece;
  }
  return nullptr;
}

/// Makes an allocation accessible when a thread that has access first touches it.
void on_fault(int number, siginfo_t* fault, void* /*context*/) {
  const std::lock_guard lock(memory().mutex);  // a faulting thread does not hold it
  const auto* const address = static_cast<const std::byte*>(fault->si_addr);
  Piece* const piece = piece_at(address);
  if (piece == nullptr) {
    ::sigaction(number, &memory().before, nullptr);  // the access faults again
    if (fault->si_code <= 0) ::raise(number);        // a signal that was sent
  } else if (!has_access) {
    end("the host touched memory of the device", address);
  } else if (address < piece->pages || address >= piece->pages + piece->page_bytes) {
    end("a kernel or copy reached beyond memory of the device,", address);
  } else {
    protect(*piece, true);
  }
}

/// Call repeatedly, because programs set handlers of their own.
void handle_faults() {
  struct sigaction now {};
  ::sigaction(SIGSEGV, nullptr, &now);
  if (now.sa_sigaction == &on_fault) return;
  memory().before = now;
  struct sigaction own {};
  own.sa_sigaction = &on_fault;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &own, nullptr);
}

void require_nan_bytes(const std::byte* begin, const std::byte* behind) {
  const auto* const other =
      std::find_if_not(begin, behind, [](std::byte byte) { return byte == std::byte{nan_byte}; });
  if (other != behind) end("a kernel or copy wrote beside memory of the device,", other);
}

void gain_access() {
  const std::lock_guard lock(memory().mutex);
  has_access = true;
  ++memory().accesses;
}

void lose_access() {
  const std::lock_guard lock(memory().mutex);
  has_access = false;
  if (--memory().accesses > 0) return;
  for (auto& [begin, piece] : memory().pieces) {
    if (piece.in_reach) protect(piece, false);
  }
}

}  // namespace

void* take_memory(std::size_t bytes) {
  const std::size_t used = round_up(bytes, alignment);
  const std::size_t page_bytes = round_up(used, page);
  const std::lock_guard lock(memory().mutex);
  handle_faults();
  void* const mapped = ::mmap(nullptr, page_bytes + 2 * page, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  Piece piece{static_cast<std::byte*>(mapped) + page, page_bytes, bytes};
  protect(piece, true);
  // Faulting in each small page would take longer than filling it.
  ::madvise(piece.pages, page_bytes, MADV_HUGEPAGE);
  std::memset(piece.pages, nan_byte, page_bytes);
  protect(piece, false);
  std::byte* const begin = piece.pages + page_bytes - used;
  memory().pieces.emplace(begin, piece);
  return begin;
}

void give_back_memory(void* address) {
  const std::lock_guard lock(memory().mutex);
  const auto* const begin = static_cast<const std::byte*>(address);
  const auto found = memory().pieces.find(begin);
  if (found == memory().pieces.end()) end("no memory of the device is given back", address);
  Piece piece = found->second;
  protect(piece, true);
  require_nan_bytes(piece.pages, begin);
  require_nan_bytes(begin + piece.bytes, piece.pages + piece.page_bytes);
  memory().pieces.erase(found);
  ::munmap(piece.pages - page, piece.page_bytes + 2 * page);
}

std::size_t taken_memory() {
  const std::lock_guard lock(memory().mutex);
  std::size_t bytes = 0;
  for (const auto& [begin, piece] : memory().pieces) bytes += piece.bytes;
  return bytes;
}

bool is_device_memory(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(memory().mutex);
  auto found = memory().pieces.upper_bound(at);
  if (found == memory().pieces.begin()) return false;
  --found;
  return at < found->first + found->second.bytes;
}

MemoryAccess::MemoryAccess() {
  gain_access();
}

MemoryAccess::~MemoryAccess() {
  lose_access();
}

MemoryAccessPause::MemoryAccessPause() : had_(has_access) {
  if (had_) lose_access();
}

MemoryAccessPause::~MemoryAccessPause() {
  if (had_) gain_access();
}

}  // namespace dstrain::stand_in
