#include "runtime/device/locked_memory.h"

#include <fstream>
#include <string>

#include "runtime/device/cpu_stream.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain;

namespace {

/// Of this process, in bytes.
Bytes locked_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stoll(line.substr(6)) * kibibyte;
  }
  return -1;
}

}  // namespace

TEST_CASE("LockedMemory: is locked as long as it lives", "[device][memory]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  test::skip("a sanitizer makes mlock(2) do nothing");
#endif
  constexpr Bytes bytes = 4 * mebibyte;
  if (LockedMemory::allowed() < bytes) {
    test::skip(fmt::format("needs {} bytes of locked memory, {} are allowed (ulimit -l)", bytes,
                           LockedMemory::allowed()));
  }
  HostMemory host;
  LockedMemory locked(host);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const Bytes before = locked_bytes();
  {
    const HostBuffer buffer(bytes, locked, stream);
    CHECK(locked_bytes() == before + bytes);
  }
  CHECK(locked_bytes() == before);
}
