#include "runtime/device/locked_memory.h"

#include <cerrno>
#include <limits>
#include <system_error>

#include <sys/mman.h>
#include <sys/resource.h>

namespace dstrain {

std::byte* LockedMemory::allocate(Bytes bytes, StreamView stream) {
  std::byte* const address = upstream_.allocate(bytes, stream);
  // Locking 0 bytes would lock a page.
  if (bytes == 0 || ::mlock(address, static_cast<std::size_t>(bytes)) == 0) return address;
  const int error = errno;
  upstream_.deallocate(address, bytes, stream);
  fail(ErrorCode::out_of_memory,
       "{} of memory cannot be locked: {}; raise ulimit -l, or set pin_memory to false",
       format_bytes(bytes), std::generic_category().message(error));
}

void LockedMemory::deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept {
  ::munlock(address, static_cast<std::size_t>(bytes));
  upstream_.deallocate(address, bytes, stream);
}

Bytes LockedMemory::allowed() {
  constexpr Bytes all = std::numeric_limits<Bytes>::max();
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return all;
  // Some processes may exceed it (CAP_IPC_LOCK): tried with address space only, without memory.
  const std::size_t beyond = limit.rlim_cur + 1;
  void* const address = ::mmap(nullptr, beyond, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return static_cast<Bytes>(limit.rlim_cur);
  const bool passes = ::mlock2(address, beyond, MLOCK_ONFAULT) == 0;
  ::munmap(address, beyond);
  return passes ? all : static_cast<Bytes>(limit.rlim_cur);
}

}  // namespace dstrain
