#include "runtime/comm/shm/segment_memory.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include <sys/mman.h>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/tensor/buffer.h"
#include "tests/comm/groups.h"
#include "tests/support/catch.h"
#include "tests/support/child_process.h"
#include "tests/support/refused_calls.h"

using namespace dstrain;

namespace {

std::shared_ptr<const comm::Segment> segment_of_one(Bytes heap_bytes) {
  return std::make_shared<const comm::Segment>(comm::Segment::create(1, heap_bytes));
}

}  // namespace

TEST_CASE("SegmentMemory: blocks are aligned and disjoint and writable", "[comm][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const auto segment = segment_of_one(16 * mebibyte);
  comm::SegmentMemory memory(segment, 0);
  std::vector<HostBuffer> blocks;
  for (const Bytes bytes :
       {Bytes{0}, Bytes{1}, Bytes{65}, 2 * mebibyte - 1, 2 * mebibyte, 5 * mebibyte, Bytes{64}}) {
    blocks.emplace_back(bytes, memory, stream);
    const std::span<std::byte> block = blocks.back().bytes();
    CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % 64 == 0);
    CHECK(memory.offset_of(block.data()) == block.data() - segment->heap(0).data());
    std::memset(block.data(), static_cast<int>(blocks.size()), block.size());
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::span<std::byte> block = blocks[i].bytes();
    CHECK(std::ranges::all_of(block, [i](std::byte b) { return b == std::byte(i + 1); }));
  }
}

TEST_CASE("SegmentMemory: freed blocks are used again once their stream is done",
          "[comm][memory]") {
  const auto mode = GENERATE(CpuStream::Mode::inline_on_caller, CpuStream::Mode::worker_thread);
  const auto segment = segment_of_one(8 * mebibyte);
  comm::SegmentMemory memory(segment, 0);
  CpuStream stream(mode);
  const Bytes bytes = GENERATE(100, 6 * mebibyte);
  const std::byte* const first = HostBuffer(bytes, memory, stream).bytes().data();
  stream.synchronize();
  for (int i = 0; i < 10; ++i) {
    CHECK(HostBuffer(bytes, memory, stream).bytes().data() == first);
    stream.synchronize();
  }
}

TEST_CASE("SegmentMemory: a full heap says how full", "[comm][memory]") {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const auto segment = segment_of_one(8 * mebibyte);
  comm::SegmentMemory memory(segment, 0);
  const HostBuffer block(6 * mebibyte, memory, stream);
  const Bytes more = GENERATE(3 * mebibyte, std::numeric_limits<Bytes>::max());
  CHECK_THROWS_WITH(memory.allocate(more, stream),
                    Catch::Matchers::ContainsSubstring(
                        "in memory shared with the other ranks: 6.00 MiB of 8.00 MiB"));
  CHECK_THROWS_AS(memory.allocate(-1, stream), Error);
}

TEST_CASE("SegmentMemory: recognizes memory that is not its own", "[comm][memory]") {
  const auto segment =
      std::make_shared<const comm::Segment>(comm::Segment::create(2, 2 * mebibyte));
  const comm::SegmentMemory memory(segment, 0);
  const std::byte elsewhere{};
  CHECK_FALSE(memory.offset_of(nullptr));
  CHECK_FALSE(memory.offset_of(&elsewhere));
  CHECK_FALSE(memory.offset_of(segment->heap(1).data()));
  CHECK(memory.offset_of(segment->heap(1).data() - 1) == 2 * mebibyte - 1);
}

TEST_CASE("SegmentMemory: a block may be freed after the memory has gone", "[comm][memory]") {
  CpuStream stream(CpuStream::Mode::worker_thread);
  std::atomic<bool> gone{false};
  auto memory = std::make_unique<comm::SegmentMemory>(segment_of_one(8 * mebibyte), 0);
  {
    const HostBuffer block(3 * mebibyte, *memory, stream);
    stream.launch([&gone, bytes = block.bytes()] {
      while (!gone) std::this_thread::yield();
      std::memset(bytes.data(), 1, bytes.size());
    });
  }
  memory.reset();
  gone = true;
  CHECK_NOTHROW(stream.synchronize());
}

TEST_CASE("Communicator memory: is counted and limited by the ledger", "[comm][memory]") {
  const test::Group group = test::shm_groups().make(2, test::hang_seconds);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  MemoryLedger ledger;
  TrackedMemory tracked(group[1].memory(), ledger, {MemoryCategory::buffers, 3 * mebibyte});
  {
    const HostBuffer block(2 * mebibyte, tracked, stream);
    CHECK(ledger.current(MemoryCategory::buffers) == 2 * mebibyte);
    CHECK_THROWS_WITH(HostBuffer(2 * mebibyte, tracked, stream),
                      Catch::Matchers::ContainsSubstring("does not fit"));
  }
  CHECK(ledger.current() == 0);
  CHECK(ledger.peak() == 2 * mebibyte);
}

TEST_CASE("Segment: heaps are disjoint and use no memory until touched", "[comm][memory]") {
  const int size = GENERATE(1, 3, 64);
  const Bytes heap = size == 64 ? 1 * gibibyte : comm::default_heap_bytes(size);
  const comm::Segment segment = comm::Segment::create(size, heap);
  for (int rank = 0; rank < size; ++rank) {
    CHECK(reinterpret_cast<std::uintptr_t>(segment.heap(rank).data()) % (2 * mebibyte) == 0);
    CHECK(segment.heap(rank).data() == segment.heap(0).data() + rank * heap);
  }
  segment.heap(size - 1).back() = std::byte{1};
}

TEST_CASE("Segment: core files omit the heaps", "[comm][memory]") {
  const comm::Segment segment = comm::Segment::create(3, 2 * mebibyte);
  const std::string begin =
      fmt::format("{:x}-", reinterpret_cast<std::uintptr_t>(segment.heap(0).data()));
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  std::string flags;
  for (std::string line; flags.empty() && std::getline(maps, line);) {
    ours = ours || line.starts_with(begin);
    if (ours && line.starts_with("VmFlags:")) flags = line + ' ';
  }
  CHECK_THAT(flags, Catch::Matchers::ContainsSubstring(" dd "));
}

TEST_CASE("Segment: many ranks share the address space", "[comm][memory]") {
  const int size = GENERATE(2, 64, 1000);
  const Bytes heap = comm::default_heap_bytes(size);
  CHECK(heap >= 1 * gibibyte);
  CHECK(heap <= 32 * 1024 * gibibyte / size);
}

TEST_CASE("Segment: a kernel that cannot omit memory from core files is no error",
          "[comm][memory]") {
  CHECK(test::in_child([]() -> std::string {
          if (!test::refuse_calls(SYS_madvise, EINVAL, MADV_DONTDUMP)) return "no filter";
          return segment_of_one(16 * mebibyte)->heap(0).empty() ? "no heap" : "";
        }) == "");
}
