#include "offload/mapped_memory.h"

#include <cerrno>

#include <sys/mman.h>

#include "offload/swap_file.h"
#include "runtime/base/error.h"

namespace dstrain::offload {
namespace {

constexpr Bytes page = 4096;

}  // namespace

std::byte* MappedMemory::allocate(Bytes bytes, StreamView /*stream*/) {
  const Bytes size = round_up(bytes, page);
  const UniqueFd fd = make_nameless_file(directory_, size);
  void* const address = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                               MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) fail_errno(errno, "map a file in " + directory_.string());
  return static_cast<std::byte*>(address);
}

void MappedMemory::deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept {
  after_work_on(stream, [address, size = static_cast<std::size_t>(round_up(bytes, page))] {
    ::munmap(address, size);
  });
}

}  // namespace dstrain::offload
