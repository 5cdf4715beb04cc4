#include "offload/request_queue.h"

#include <cerrno>

#include <catch2/catch.hpp>

#include "tests/offload/io_support.h"
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
  const Ticket second = here.queue.add(Direction::read, here.file, 32 * kibibyte,
                                       here.memory.part(32 * kibibyte, 4096));
  std::vector<Block> blocks;
  while (const std::optional<Block> block = here.queue.take()) blocks.push_back(*block);
  REQUIRE(blocks.size() == 3);
  CHECK(blocks[0].offset == 4096);
  CHECK(blocks[0].memory.size() == 16 * kibibyte);
  CHECK(blocks[1].offset == 20 * kibibyte);
  CHECK(blocks[1].memory.data() == here.memory.all().data() + 16 * kibibyte);
  CHECK(blocks[1].memory.size() == 4 * kibibyte);
  CHECK(blocks[2].direction == Direction::read);
  for (Block& block : blocks) {
    CHECK_FALSE(here.queue.settle(block, static_cast<std::int64_t>(block.memory.size())));
  }
  here.queue.wait(second);
  here.queue.wait(first);
}

TEST_CASE("RequestQueue: a short result goes on from where it stopped", "[offload][queue]") {
  Workplace here;
  const auto direction = GENERATE(Direction::read, Direction::write);
  const Ticket ticket = here.queue.add(direction, here.file, 0, here.memory.part(0, 16 * kibibyte));
  Block block = here.queue.take().value();
  CHECK(here.queue.settle(block, -EINTR));
  CHECK(here.queue.settle(block, -EAGAIN));
  CHECK(block.offset == 0);
  CHECK(here.queue.settle(block, 4096));
  CHECK(block.offset == 4096);
  CHECK(here.queue.settle(block, 4096 + 100));  // the rest of a piece is transferred again
  CHECK(block.offset == 8192);
  CHECK(block.memory.data() == here.memory.all().data() + 8192);
  CHECK_FALSE(here.queue.settle(block, 8192));
  here.queue.wait(ticket);
}

TEST_CASE("RequestQueue: a result within a piece is tried once more", "[offload][queue]") {
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
  const Ticket next = here.queue.add(Direction::read, here.file, 0, here.memory.part(0, 4096));
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
