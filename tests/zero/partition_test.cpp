#include "zero/partition.h"

#include "tests/support/catch.h"

using dstrain::zero::Partition;

TEST_CASE("Partition: ranges tile the tensor", "[zero][partition]") {
  const auto numel = GENERATE(range<std::int64_t>(0, 200, 7));
  const auto world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const auto alignment = GENERATE(1, 4, 64);
  CAPTURE(numel, world, alignment);
  const Partition partition(numel, {world, alignment});
  std::int64_t next = 0;
  for (int rank = 0; rank < world; ++rank) {
    const auto range = partition.range(rank);
    CHECK(range.begin == next);
    CHECK(range.count() >= 0);
    CHECK(range.count() <= partition.shard_numel());
    next = range.end;
  }
  CHECK(next == numel);
  CHECK(partition.shard_numel() % alignment == 0);
  CHECK(partition.padded_numel() >= numel);
  CHECK(partition.padded_numel() < numel + world * alignment);
}
