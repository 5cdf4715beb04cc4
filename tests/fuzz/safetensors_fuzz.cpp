// A whole file, and reads at the ends of every tensor.
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/safetensors/file.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

namespace {

UniqueFd memory_file(const std::uint8_t* data, std::size_t size) {
  UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd || ::write(fd.get(), data, size) != static_cast<ssize_t>(size)) {
    fail_errno(errno, "write a file in memory");
  }
  return fd;
}

void read_ends(const safetensors::File& file, const safetensors::Entry& entry) {
  if (!safetensors::is_readable_dtype(entry.dtype)) return;
  float value = 0;
  file.read(entry, 0, {&value, std::size_t{entry.numel > 0}});
  if (entry.numel > 0) file.read(entry, entry.numel - 1, {&value, 1});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const safetensors::File file(memory_file(data, size), "input");
    std::uint64_t end = 0;
    for (const safetensors::Entry& entry : file.entries()) {
      DSTRAIN_CHECK(entry.begin == end && entry.end >= end && entry.end <= size, "{} to {}",
                    entry.begin, entry.end);
      end = entry.end;
      read_ends(file, entry);
    }
  });
}
