#include "offload/request_queue.h"

#include <cerrno>

#include "tests/offload/io_support.h"
#include "tests/profile/hand_clock.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::offload;
using test::AlignedBytes;
using test::error_of;

namespace {

struct Workplace {
  test::TempDir directory;
  SwapFile file{directory.path(), 64 * kibibyte};
  AlignedBytes memory{64 * kibibyte};
  RequestQueue queue{16 * kibibyte};
  std::string name = "swap file in " + directory.path().string();
};

}  // namespace

TEST_CASE("RequestQueue: requests are cut into blocks in order", "[offload][queue]") {
  Workplace here;
  const Ticket first =
      here.queue.add(Direction::write, here.file, 4096, here.memory.part(0, 20 * kibibyte));
  const Ticket second = here.queue.add(Direction::write, here.file, 32 * kibibyte,
                                       here.memory.part(32 * kibibyte, 4096));
  std::vector<Block> blocks;
  while (const std::optional<Block> block = here.queue.take()) blocks.push_back(*block);
  REQUIRE(blocks.size() == 3);
  CHECK(blocks[0].offset == 4096);
  CHECK(blocks[0].memory.size() == 16 * kibibyte);
  CHECK(blocks[1].offset == 20 * kibibyte);
  CHECK(blocks[1].memory.data() == here.memory.all().data() + 16 * kibibyte);
  CHECK(blocks[1].memory.size() == 4 * kibibyte);
  CHECK(blocks[2].offset == 32 * kibibyte);
  for (Block& block : blocks) {
    CHECK_FALSE(here.queue.settle(block, static_cast<std::int64_t>(block.memory.size())));
  }
  here.queue.wait(second);
  here.queue.wait(first);
}

TEST_CASE("RequestQueue: reads and writes do not wait for each other", "[offload][queue]") {
  Workplace here;
  const Ticket write =
      here.queue.add(Direction::write, here.file, 0, here.memory.part(0, 48 * kibibyte));
  Block first = here.queue.take().value();
  const Ticket read = here.queue.add(Direction::read, here.file, 48 * kibibyte,
                                     here.memory.part(48 * kibibyte, 16 * kibibyte));
  Block second = here.queue.take().value();
  CHECK(first.direction == Direction::write);
  CHECK(second.direction == Direction::read);
  std::ignore = here.queue.settle(second, 16 * kibibyte);
  here.queue.wait(read);
  while (std::optional<Block> rest = here.queue.take()) {
    CHECK(rest->direction == Direction::write);
    std::ignore = here.queue.settle(*rest, 16 * kibibyte);
  }
  std::ignore = here.queue.settle(first, 16 * kibibyte);
  here.queue.wait(write);
}

TEST_CASE("RequestQueue: the timeline shows when blocks are in flight", "[offload][queue]") {
  test::HandClock clock;
  clock.now = 0;
  profile::Timeline timeline(clock);
  Workplace here;
  RequestQueue queue(16 * kibibyte, &timeline);
  const Ticket ticket =
      queue.add(Direction::write, here.file, 0, here.memory.part(0, 32 * kibibyte));
  Block first = queue.take().value();
  clock.now = 1;
  Block second = queue.take().value();
  CHECK(queue.settle(first, 4096));  // not yet all of it
  clock.now = 2;
  CHECK_FALSE(queue.settle(first, 12 * kibibyte));
  clock.now = 3;
  CHECK_FALSE(queue.settle(second, -EIO));
  CHECK(error_of([&] { queue.wait(ticket); }) != "");
  const std::vector<profile::Span> writes = timeline.spans(profile::Lane::disk_writes);
  REQUIRE(writes.size() == 1);
  CHECK(writes[0].begin == 0);
  CHECK(writes[0].end == 3);
  CHECK(writes[0].detail == 32 * kibibyte);
  CHECK(timeline.spans(profile::Lane::disk_reads).empty());
}

TEST_CASE("RequestQueue: memory that changes while it is written is found", "[offload][queue]") {
  Workplace here;
  const std::span<std::byte> memory = here.memory.part(0, 8192);
  const Ticket write = here.queue.add(Direction::write, here.file, 0, memory);
  Block block = here.queue.take().value();
  memory[5000] ^= std::byte{1};  // the system gets to it only now
  CHECK_FALSE(here.queue.settle(block, 8192));
  here.queue.wait(write);
  const Ticket read = here.queue.add(Direction::read, here.file, 0, memory);
  block = here.queue.take().value();
  CHECK_FALSE(here.queue.settle(block, 8192));
  CHECK(error_of([&] { here.queue.wait(read); }) ==
        here.name + ": bytes 4096 to 8191 are not what was written there");
}

TEST_CASE("RequestQueue: each part of a short read is compared", "[offload][queue]") {
  Workplace here;
  const std::size_t damaged = GENERATE(0U, 1U, 3U);
  const std::span<std::byte> memory = here.memory.part(0, 16 * kibibyte);
  memory[damaged * 4096 + 7] ^= std::byte{1};  // the file was never written: it holds zeros
  const Ticket read = here.queue.add(Direction::read, here.file, 0, memory);
  Block block = here.queue.take().value();
  bool again = here.queue.settle(block, 4096);
  if (again) again = here.queue.settle(block, 4096);
  if (again) again = here.queue.settle(block, 8192);
  CHECK_FALSE(again);
  CHECK(error_of([&] { here.queue.wait(read); }) ==
        fmt::format("{}: bytes {} to {} are not what was written there", here.name, damaged * 4096,
                    damaged * 4096 + 4095));
}

TEST_CASE("RequestQueue: the direction with fewer blocks in flight is next", "[offload][queue]") {
  Workplace here;
  std::ignore = here.queue.add(Direction::read, here.file, 0, here.memory.part(0, 32 * kibibyte));
  std::ignore = here.queue.add(Direction::write, here.file, 32 * kibibyte,
                               here.memory.part(32 * kibibyte, 32 * kibibyte));
  std::vector<Direction> order;
  std::vector<Block> blocks;
  while (const std::optional<Block> block = here.queue.take()) {
    order.push_back(block->direction);
    blocks.push_back(*block);
  }
  CHECK(
      (order == std::vector{Direction::read, Direction::write, Direction::read, Direction::write}));
  for (Block& block : blocks) std::ignore = here.queue.settle(block, 16 * kibibyte);
}

TEST_CASE("RequestQueue: the first of several failures is reported", "[offload][queue]") {
  Workplace here;
  const Ticket ticket = here.queue.add(Direction::write, here.file, 0, here.memory.all());
  Block first = here.queue.take().value();
  Block second = here.queue.take().value();
  CHECK_FALSE(here.queue.settle(second, -ENOSPC));
  CHECK_FALSE(here.queue.settle(first, -EIO));
  CHECK(error_of([&] { here.queue.wait(ticket); }) ==
        here.name + ": write 16384 bytes at 16384: No space left on device");
}

TEST_CASE("RequestQueue: a short result goes on from where it stopped", "[offload][queue]") {
  Workplace here;
  const auto direction = GENERATE(Direction::read, Direction::write);
  const Ticket ticket = here.queue.add(direction, here.file, 0, here.memory.part(0, 16 * kibibyte));
  Block block = here.queue.take().value();
  CHECK_FALSE(here.queue.done(ticket));
  CHECK(here.queue.settle(block, -EINTR));
  CHECK(here.queue.settle(block, -EAGAIN));
  CHECK(block.offset == 0);
  CHECK(here.queue.settle(block, 4096));
  CHECK(block.offset == 4096);
  CHECK(here.queue.settle(block, 4096 + 100));  // the rest of a piece is transferred again
  CHECK(block.offset == 8192);
  CHECK(block.memory.data() == here.memory.all().data() + 8192);
  CHECK_FALSE(here.queue.settle(block, 8192));
  CHECK(here.queue.done(ticket));
  here.queue.wait(ticket);
}

TEST_CASE("RequestQueue: a transfer that ends within a piece is retried once", "[offload][queue]") {
  Workplace here;
  const Ticket ticket = here.queue.add(Direction::write, here.file, 0, here.memory.part(0, 8192));
  Block block = here.queue.take().value();
  CHECK(here.queue.settle(block, 512));
  CHECK(block.offset == 0);
  CHECK(here.queue.settle(block, 4096 + 512));
  CHECK(here.queue.settle(block, 512));
  CHECK(block.offset == 4096);
  CHECK_FALSE(here.queue.settle(block, 512));
  CHECK(error_of([&] { here.queue.wait(ticket); }) ==
        here.name + ": write 4096 bytes at 4096: nothing more was written");
}

TEST_CASE("RequestQueue: a failure names the place and drops the rest", "[offload][queue]") {
  struct Row {
    Direction direction;
    std::int64_t result;
    std::string message;
  };
  const auto row = GENERATE(
      Row{Direction::read, -EIO, ": read 16384 bytes at 16384: Input/output error"},
      Row{Direction::write, -ENOSPC, ": write 16384 bytes at 16384: No space left on device"},
      Row{Direction::read, 0, ": read 16384 bytes at 16384: the file ends before"},
      Row{Direction::write, 0, ": write 16384 bytes at 16384: nothing more was written"});
  Workplace here;
  const Ticket ticket = here.queue.add(row.direction, here.file, 0, here.memory.all());
  const Ticket next = here.queue.add(row.direction, here.file, 0, here.memory.part(0, 4096));
  Block first = here.queue.take().value();
  Block second = here.queue.take().value();
  CHECK_FALSE(here.queue.settle(second, row.result));
  Block after = here.queue.take().value();
  CHECK(after.memory.size() == 4096);
  CHECK_FALSE(here.queue.settle(first, 16 * kibibyte));
  CHECK(error_of([&] { here.queue.wait(ticket); }) == here.name + row.message);
  std::ignore = here.queue.settle(after, -EIO);
  CHECK(error_of([&] { here.queue.wait(next); }) != "");
}

TEST_CASE("RequestQueue: a closed queue hands nothing out", "[offload][queue]") {
  Workplace here;
  std::ignore = here.queue.add(Direction::read, here.file, 0, here.memory.all());
  here.queue.close();
  CHECK_FALSE(here.queue.take());
  CHECK_FALSE(here.queue.wait_and_take());
  CHECK(here.queue.closed());
}
