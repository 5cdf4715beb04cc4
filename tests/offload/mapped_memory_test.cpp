#include "offload/mapped_memory.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

TEST_CASE("MappedMemory: keeps what is written and leaves nothing", "[offload]") {
  const test::TempDir folder;
  offload::MappedMemory memory(folder.path());
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const HostBuffer first(3 * mebibyte + 64, memory, stream);
  const HostBuffer second(100, memory, stream);
  CHECK(std::ranges::count(first.bytes(), std::byte{0}) == 3 * mebibyte + 64);
  std::ranges::fill(first.bytes(), std::byte{7});
  std::ranges::fill(second.bytes(), std::byte{9});
  CHECK(std::ranges::count(first.bytes(), std::byte{7}) == 3 * mebibyte + 64);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("MappedMemory: a directory that cannot be used is named", "[offload]") {
  const test::TempDir folder;
  offload::MappedMemory memory(folder.path() / "missing");
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_WITH(memory.allocate(4096, stream), Catch::Matchers::ContainsSubstring("missing"));
}
