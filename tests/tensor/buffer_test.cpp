#include "runtime/tensor/buffer.h"

#include <algorithm>
#include <utility>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// A ledger with host memory behind it and an inline stream.
struct Memory {
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  HostMemory host;
  MemoryLedger ledger;
  TrackedMemory tracked{host, ledger, {.category = MemoryCategory::buffers}};
};

}  // namespace

TEST_CASE("Buffer: frees at the end of its scope", "[tensor][buffer]") {
  Memory memory;
  {
    const HostBuffer buffer(128, memory.tracked, memory.stream);
    CHECK(buffer.bytes().size() == 128);
    CHECK(memory.ledger.current() == 128);
  }
  CHECK(memory.ledger.current() == 0);
}

TEST_CASE("Buffer: a default one is empty", "[tensor][buffer]") {
  const HostBuffer buffer;
  CHECK(buffer.bytes().empty());
  CHECK(buffer.as<float>().empty());
}

TEST_CASE("Buffer: of no bytes is fine", "[tensor][buffer]") {
  Memory memory;
  const HostBuffer buffer(0, memory.tracked, memory.stream);
  CHECK(buffer.bytes().empty());
}

TEST_CASE("Buffer: a move transfers the memory", "[tensor][buffer]") {
  Memory memory;
  HostBuffer first(64, memory.tracked, memory.stream);
  const std::byte* const address = first.bytes().data();
  HostBuffer second(std::move(first));
  CHECK(first.bytes().empty());  // NOLINT(bugprone-use-after-move)
  CHECK(second.bytes().data() == address);
  CHECK(memory.ledger.current() == 64);
}

TEST_CASE("Buffer: assignment frees the old memory", "[tensor][buffer]") {
  Memory memory;
  HostBuffer buffer(64, memory.tracked, memory.stream);
  buffer = HostBuffer(256, memory.tracked, memory.stream);
  CHECK(buffer.bytes().size() == 256);
  CHECK(memory.ledger.current() == 256);
  auto& same = buffer;
  buffer = std::move(same);
  CHECK(buffer.bytes().size() == 256);
  buffer = HostBuffer();
  CHECK(memory.ledger.current() == 0);
}

TEST_CASE("Buffer: shows its memory as elements", "[tensor][buffer]") {
  Memory memory;
  const HostBuffer buffer(4 * sizeof(float), memory.tracked, memory.stream);
  const std::span<float> values = buffer.as<float>();
  REQUIRE(values.size() == 4);
  std::ranges::fill(values, 1.5F);
  CHECK(buffer.as<const float>()[3] == 1.5F);
}

TEST_CASE("Buffer: lives until the work that uses it is done", "[tensor][buffer]") {
  Memory memory;
  CpuStream worker(CpuStream::Mode::worker_thread);
  float sum = 0;
  {
    const HostBuffer buffer(1000 * sizeof(float), memory.tracked, worker);
    worker.launch([values = buffer.as<float>()] { std::ranges::fill(values, 2.0F); });
    worker.launch([values = buffer.as<float>(), &sum] {
      for (const float value : values) sum += value;
    });
  }  // the address sanitizer sees it if the memory goes before the work
  worker.synchronize();
  CHECK(sum == 2000.0F);
  CHECK(memory.ledger.current() == 0);
}

}  // namespace dstrain
