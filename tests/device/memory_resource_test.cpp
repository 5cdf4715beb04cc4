#include "runtime/device/memory_resource.h"

#include <cstring>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// An upstream that has no memory.
class EmptyMemory final : public MemoryResource {
 public:
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes /*bytes*/, StreamView /*stream*/) override {
    fail(ErrorCode::out_of_memory, "nothing here");
  }
  void deallocate(std::byte* /*address*/,
                  Bytes /*bytes*/,
                  StreamView /*stream*/) noexcept override {}
};

}  // namespace

TEST_CASE("HostMemory: blocks of any size are aligned and writable", "[device][memory]") {
  const Bytes bytes = GENERATE(0, 1, 63, 64, 65, 2 * mebibyte - 1, 2 * mebibyte, 5'000'001);
  CAPTURE(bytes);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  std::byte* const address = memory.allocate(bytes, stream);
  REQUIRE(address != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(address) % (bytes < 4096 ? 64 : 4096) == 0);
  std::memset(address, 0xab, static_cast<std::size_t>(bytes));
  memory.deallocate(address, bytes, stream);
}

TEST_CASE("HostMemory: more than the machine has is an error", "[device][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  constexpr Bytes huge = Bytes{1} << 60;
  CHECK_THROWS_WITH(memory.allocate(huge, stream), "the machine has no 1048576 TiB of memory left");
}

TEST_CASE("HostMemory: an invalid size is a bug", "[device][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  const Bytes bytes = GENERATE(Bytes{-1}, std::numeric_limits<Bytes>::max());
  CHECK_THROWS_WITH(memory.allocate(bytes, stream),
                    Catch::Matchers::ContainsSubstring("check failed"));
}

TEST_CASE("HostMemory: is freed after the work launched before", "[device][memory]") {
  CpuStream stream(CpuStream::Mode::worker_thread);
  HostMemory memory;
  constexpr std::size_t size = 4096;
  std::byte* const address = memory.allocate(size, stream);
  std::vector<std::byte> seen(size);
  for (int round = 0; round < 100; ++round) {
    stream.launch([address, round] { std::memset(address, round, size); });
  }
  stream.launch([&seen, address] { std::memcpy(seen.data(), address, size); });
  memory.deallocate(address, size, stream);  // the address sanitizer sees it if this is too early
  stream.synchronize();
  CHECK(seen == std::vector<std::byte>(size, std::byte{99}));
}

TEST_CASE("MemoryLedger: counts current and peak usage", "[device][memory]") {
  MemoryLedger ledger;
  ledger.add(MemoryCategory::parameters, 100);
  ledger.add(MemoryCategory::gradients, 50);
  ledger.add(MemoryCategory::parameters, -60);
  ledger.add(MemoryCategory::gradients, 20);
  CHECK(ledger.current() == 110);
  CHECK(ledger.peak() == 150);
  CHECK(ledger.current(MemoryCategory::parameters) == 40);
  CHECK(ledger.peak(MemoryCategory::parameters) == 100);
  CHECK(ledger.current(MemoryCategory::gradients) == 70);
  CHECK(ledger.peak(MemoryCategory::gradients) == 70);
  CHECK(ledger.peak(MemoryCategory::optimizer) == 0);
}

TEST_CASE("TrackedMemory: counts under its category and gives back", "[device][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory host;
  MemoryLedger ledger;
  TrackedMemory activations(host, ledger, {.category = MemoryCategory::activations});
  std::byte* const address = activations.allocate(1000, stream);
  CHECK(ledger.current(MemoryCategory::activations) == 1000);
  activations.deallocate(address, 1000, stream);
  CHECK(ledger.current() == 0);
  CHECK(ledger.peak() == 1000);
}

TEST_CASE("TrackedMemory: a budget can be filled but not passed", "[device][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory host;
  MemoryLedger ledger;
  constexpr Bytes limit = 3 * mebibyte;
  TrackedMemory parameters(host, ledger, {.category = MemoryCategory::parameters, .limit = limit});
  TrackedMemory optimizer(host, ledger, {.category = MemoryCategory::optimizer, .limit = limit});
  std::byte* const first = parameters.allocate(2 * mebibyte, stream);
  CHECK_THROWS_WITH(
      optimizer.allocate(mebibyte + 1, stream),
      "device memory: 1.00 MiB more for optimizer does not fit into the budget of 3.00 MiB (in "
      "use: parameters 2.00 MiB, gradients 0 B, optimizer 0 B, activations 0 B, buffers 0 B)");
  CHECK(ledger.peak() == 2 * mebibyte);
  std::byte* const second = optimizer.allocate(mebibyte, stream);
  CHECK(ledger.current() == limit);
  parameters.deallocate(first, 2 * mebibyte, stream);
  optimizer.deallocate(second, mebibyte, stream);
  CHECK(ledger.current() == 0);
}

TEST_CASE("TrackedMemory: a failed allocation is not counted", "[device][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  EmptyMemory empty;
  MemoryLedger ledger;
  TrackedMemory buffers(empty, ledger, {.category = MemoryCategory::buffers});
  CHECK_THROWS_WITH(buffers.allocate(10, stream),
                    "nothing here; for buffers (in use: parameters 0 B, gradients 0 B, optimizer "
                    "0 B, activations 0 B, buffers 0 B)");
  CHECK(ledger.current() == 0);
  CHECK(ledger.current(MemoryCategory::buffers) == 0);
}

TEST_CASE("TrackedMemory: threads together never pass the budget", "[device][memory]") {
  HostMemory host;
  MemoryLedger ledger;
  constexpr Bytes limit = 10'000;
  TrackedMemory memory(host, ledger, {.category = MemoryCategory::buffers, .limit = limit});
  {
    std::vector<std::jthread> threads;
    for (Bytes bytes = 3000; bytes < 3004; ++bytes) {
      threads.emplace_back([&memory, bytes] {
        CpuStream stream(CpuStream::Mode::inline_on_caller);
        for (int round = 0; round < 2000; ++round) {
          try {
            memory.deallocate(memory.allocate(bytes, stream), bytes, stream);
          } catch (const Error&) {  // full: the others hold it
          }
        }
      });
    }
  }
  CHECK(ledger.current() == 0);
  CHECK(ledger.peak() <= limit);
  CHECK(ledger.peak() >= 3003);
}

}  // namespace dstrain
