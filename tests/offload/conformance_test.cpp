// What every implementation of AsyncFileIo does.
#include <algorithm>
#include <random>
#include <thread>

#include <sys/mman.h>

#include "runtime/base/error.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::offload;
using Catch::Matchers::ContainsSubstring;
using test::AlignedBytes;
using test::make_io;

namespace {

/// A file's ranges of random sizes, in order, that fill it.
std::vector<FileRange> random_ranges(Bytes size, std::mt19937& random) {
  std::vector<FileRange> ranges;
  for (Bytes at = 0; at < size;) {
    const Bytes end = std::min(size, at + io_alignment * static_cast<Bytes>(1 + random() % 40));
    ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

}  // namespace

TEST_CASE("AsyncFileIo: what was written is read back", "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const Bytes block_size = GENERATE(Bytes{4096}, 64 * kibibyte, mebibyte);
  const int queue_depth = GENERATE(1, 8, 33);
  const int threads = GENERATE(1, 3);
  const Bytes size = GENERATE(Bytes{4096}, 17 * Bytes{4096}, 3 * mebibyte + 4096);
  CAPTURE(static_cast<int>(kind), block_size, queue_depth, threads, size);
  const auto io =
      make_io(kind, {.block_size = block_size, .queue_depth = queue_depth, .threads = threads});
  const test::TempDir directory;
  SwapFile file(directory.path(), 2 * size);
  const AlignedBytes memory(2 * size);
  test::fill(memory.all(), 7);
  io->wait(io->write(file, size, memory.part(0, size)));
  const Ticket beside = io->write(file, 0, memory.part(size, size));
  const AlignedBytes back(size);
  io->wait(io->read(file, size, back.all()));
  CHECK(std::ranges::equal(back.all(), memory.part(0, size)));
  io->wait(beside);
  io->wait(io->read(file, 0, back.all()));
  CHECK(std::ranges::equal(back.all(), memory.part(size, size)));
}

TEST_CASE("AsyncFileIo: how operations are submitted changes no result", "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const bool single_submit = GENERATE(false, true);
  const bool overlap_events = GENERATE(false, true);
  const bool registered = GENERATE(false, true);
  const auto io = make_io(kind, {.block_size = 8192,
                                 .queue_depth = 4,
                                 .threads = 2,
                                 .single_submit = single_submit,
                                 .overlap_events = overlap_events});
  const test::TempDir directory;
  SwapFile file(directory.path(), mebibyte);
  const AlignedBytes memory(2 * mebibyte);  // of which the second half is not registered
  test::fill(memory.part(0, mebibyte), 3);
  if (registered) io->register_memory(memory.part(0, mebibyte));
  io->wait(io->write(file, 0, memory.part(0, mebibyte)));
  io->wait(io->read(file, 0, memory.part(mebibyte, mebibyte)));
  CHECK(test::is_filled(memory.part(mebibyte, mebibyte), 3));
  std::ranges::fill(memory.part(0, mebibyte), std::byte{});
  io->wait(io->read(file, 0, memory.part(0, mebibyte)));
  CHECK(test::is_filled(memory.part(0, mebibyte), 3));
}

TEST_CASE("AsyncFileIo: registered memory may be replaced by other memory",
          "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {.block_size = 64 * kibibyte, .queue_depth = 4, .threads = 2});
  const test::TempDir directory;
  constexpr auto size = static_cast<std::size_t>(mebibyte);
  SwapFile file(directory.path(), mebibyte);
  const auto map = [](void* at, int more) {
    return ::mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
  };
  void* const address = map(nullptr, 0);
  REQUIRE(address != MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(address), size);
  test::fill(memory, 1);
  io->register_memory(memory);
  io->wait(io->write(file, 0, memory));
  io->unregister_memory(memory);
  REQUIRE(map(address, MAP_FIXED) == address);  // fresh pages at the same place
  test::fill(memory, 2);
  io->wait(io->write(file, 0, memory));
  const AlignedBytes back(mebibyte);
  io->wait(io->read(file, 0, back.all()));
  CHECK(test::is_filled(back.all(), 2));
  ::munmap(address, size);
}

TEST_CASE("AsyncFileIo: many requests are under way and end in any order",
          "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const unsigned seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  std::mt19937 random(seed);
  const Bytes size = 16 * mebibyte;
  const auto io = make_io(kind, {.block_size = 16 * kibibyte, .queue_depth = 16, .threads = 2});
  const test::TempDir directory;
  SwapFile old_file(directory.path(), size);
  SwapFile new_file(directory.path(), size);
  const AlignedBytes old_memory(size);
  const AlignedBytes new_memory(size);
  test::fill(old_memory.all(), seed);
  io->wait(io->write(old_file, 0, old_memory.all()));
  std::ranges::fill(old_memory.all(), std::byte{});
  test::fill(new_memory.all(), seed + 1);
  std::vector<Ticket> tickets;
  for (const FileRange& range : random_ranges(size, random)) {
    const Bytes bytes = range.end - range.begin;
    tickets.push_back(io->write(new_file, range.begin, new_memory.part(range.begin, bytes)));
    tickets.push_back(io->read(old_file, range.begin, old_memory.part(range.begin, bytes)));
  }
  std::ranges::shuffle(tickets, random);
  for (const Ticket ticket : tickets) io->wait(ticket);
  CHECK(test::is_filled(old_memory.all(), seed));
  io->wait(io->read(new_file, 0, old_memory.all()));
  CHECK(test::is_filled(old_memory.all(), seed + 1));
}

TEST_CASE("AsyncFileIo: a rewritten range has what was written last", "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {.block_size = 8192, .queue_depth = 8, .threads = 2});
  const test::TempDir directory;
  const Bytes size = 256 * kibibyte;
  SwapFile file(directory.path(), size);
  const AlignedBytes memory(size);
  io->wait(io->read(file, 0, memory.all()));
  CHECK(std::ranges::all_of(memory.all(), [](std::byte b) { return b == std::byte{}; }));
  for (std::uint64_t round = 1; round <= 50; ++round) {
    test::fill(memory.all(), round);
    io->wait(io->write(file, 0, memory.all()));
    std::ranges::fill(memory.all(), std::byte{});
    io->wait(io->read(file, 0, memory.all()));
    REQUIRE(test::is_filled(memory.all(), round));
  }
}

TEST_CASE("AsyncFileIo: concurrent threads get their own data", "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {.block_size = 8192, .queue_depth = 8, .threads = 2});
  const test::TempDir directory;
  const Bytes part = 128 * kibibyte;
  constexpr int callers = 4;
  SwapFile file(directory.path(), part * callers);
  const AlignedBytes memory(part * callers);
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      const auto mine = memory.part(caller * part, part);
      for (std::uint64_t round = 0; round < 10; ++round) {
        test::fill(mine, round + static_cast<std::uint64_t>(caller));
        io->wait(io->write(file, caller * part, mine));
        std::ranges::fill(mine, std::byte{});
        io->wait(io->read(file, caller * part, mine));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int caller = 0; caller < callers; ++caller) {
    CHECK(test::is_filled(memory.part(caller * part, part), 9 + static_cast<unsigned>(caller)));
  }
}

TEST_CASE("AsyncFileIo: invalid requests are refused", "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {});
  const test::TempDir directory;
  SwapFile file(directory.path(), 8192);
  const AlignedBytes memory(8192);
  const auto read = [&](Bytes offset, std::span<std::byte> into) {
    io->wait(io->read(file, offset, into));
  };
  CHECK_THROWS_WITH(read(512, memory.part(0, 4096)),
                    ContainsSubstring("offset 512 is no multiple"));
  CHECK_THROWS_WITH(read(0, memory.part(8, 4096)), ContainsSubstring("is no multiple of 4096"));
  CHECK_THROWS_WITH(read(0, memory.part(0, 1000)), ContainsSubstring("size 1000 is no multiple"));
  CHECK_THROWS_WITH(read(4096, memory.part(0, 8192)),
                    ContainsSubstring("8192 bytes at 4096 of 8192"));
  CHECK_THROWS_WITH(read(-4096, memory.part(0, 4096)), ContainsSubstring("at -4096"));
  read(8192, {});
  const Ticket ticket = io->read(file, 0, memory.all());
  io->wait(ticket);
  CHECK_THROWS_WITH(io->wait(ticket), ContainsSubstring("it was waited for"));
}

TEST_CASE("AsyncFileIo: the destructor waits for blocks in flight", "[offload][conformance]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const test::TempDir directory;
  const Bytes size = 4 * mebibyte;
  SwapFile file(directory.path(), size);
  const AlignedBytes memory(size);
  for (int round = 0; round < 10; ++round) {
    auto io = make_io(kind, {.block_size = 4096, .queue_depth = 16, .threads = 2});
    std::ignore = io->write(file, 0, memory.part(0, size / 2));
    std::ignore = io->read(file, size / 2, memory.part(size / 2, size / 2));
    io.reset();
    std::ranges::fill(memory.all(), std::byte{});  // nobody reads or writes it any more
  }
}
