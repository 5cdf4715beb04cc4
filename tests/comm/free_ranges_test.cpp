#include "runtime/comm/shm/free_ranges.h"

#include <vector>

#include "runtime/base/error.h"
#include "runtime/numeric/philox.h"
#include "tests/support/catch.h"

using dstrain::comm::FreeRanges;

TEST_CASE("FreeRanges: a returned range merges with its neighbours", "[comm]") {
  FreeRanges ranges(100);
  CHECK(ranges.take(40, 1) == 0);
  CHECK(ranges.take(30, 1) == 40);
  CHECK(ranges.take(30, 1) == 70);
  CHECK(ranges.free_bytes() == 0);
  CHECK_FALSE(ranges.take(1, 1));
  ranges.give_back(0, 40);
  ranges.give_back(70, 30);
  CHECK_FALSE(ranges.take(41, 1));
  ranges.give_back(40, 30);
  CHECK(ranges.take(100, 1) == 0);
}

TEST_CASE("FreeRanges: starts are aligned and nothing is lost before them", "[comm]") {
  FreeRanges ranges(256);
  CHECK(ranges.take(10, 64) == 0);
  CHECK(ranges.take(64, 64) == 64);
  CHECK(ranges.take(54, 1) == 10);
  CHECK(ranges.take(128, 128) == 128);
  CHECK(ranges.free_bytes() == 0);
  CHECK_FALSE(FreeRanges(0).take(1, 1));
}

TEST_CASE("FreeRanges: returning a free range is a bug", "[comm]") {
  FreeRanges ranges(100);
  CHECK(ranges.take(50, 1) == 0);
  CHECK_THROWS_AS(ranges.give_back(40, 20), dstrain::Error);
  ranges.give_back(10, 20);
  CHECK_THROWS_AS(ranges.give_back(10, 20), dstrain::Error);
  CHECK_THROWS_AS(ranges.give_back(0, 20), dstrain::Error);
}

TEST_CASE("FreeRanges: blocks never overlap in any order", "[comm]") {
  const auto seed = GENERATE(range(1U, 6U));
  CAPTURE(seed);
  constexpr std::size_t end = 4096;
  struct Block {
    dstrain::Bytes begin;
    dstrain::Bytes bytes;
  };
  FreeRanges ranges(end);
  std::vector<Block> blocks;
  std::vector<int> owners(end);
  std::int64_t taken = 0;
  const auto mark = [&](const Block& block, int by) {
    taken += by * block.bytes;
    for (dstrain::Bytes i = 0; i < block.bytes; ++i) {
      owners[static_cast<std::size_t>(block.begin + i)] += by;
    }
  };
  for (std::uint64_t step = 0; step < 2000; ++step) {
    const auto words = dstrain::philox({.seed = seed, .index = step});
    const Block wanted{0, 1 + words[1] % 200};
    if (const auto begin = ranges.take(wanted.bytes, 1 << words[2] % 7);
        words[0] % 2 == 0 && begin) {
      blocks.push_back({*begin, wanted.bytes});
      mark(blocks.back(), 1);
    } else if (begin) {
      ranges.give_back(*begin, wanted.bytes);
    }
    if (words[0] % 3 == 0 && !blocks.empty()) {
      std::swap(blocks[words[3] % blocks.size()], blocks.back());
      ranges.give_back(blocks.back().begin, blocks.back().bytes);
      mark(blocks.back(), -1);
      blocks.pop_back();
    }
  }
  CHECK(std::ranges::all_of(owners, [](int owner) { return owner == 0 || owner == 1; }));
  CHECK(ranges.free_bytes() == dstrain::Bytes{end} - taken);
}
