#include "runtime/tokenizer/pair_merger.h"

#include <algorithm>
#include <vector>

#include "runtime/numeric/philox.h"
#include "tests/support/catch.h"

using namespace dstrain;
using tokenizer::Merge;
using tokenizer::MergeTable;
using tokenizer::PairMerger;
using Symbols = std::vector<std::int32_t>;

namespace {

/// As byte-pair encoding is told: the pair of the lowest rank, everywhere from the left.
Symbols merged_plainly(Symbols symbols, const std::vector<Merge>& merges) {
  for (;;) {
    std::size_t best = merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = std::ranges::find_if(merges, [&](const Merge& merge) {
        return merge.left == symbols[i] && merge.right == symbols[i + 1];
      });
      const auto rank = static_cast<std::size_t>(found - merges.begin());
      if (rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[at] = merges[best].result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

Symbols merged(const Symbols& symbols, const MergeTable& table) {
  PairMerger merger;
  merger.symbols() = symbols;
  merger.merge(table);
  return merger.symbols();
}

}  // namespace

TEST_CASE("Pair merger: short and long words are merged as the rule says", "[tokenizer]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::uint64_t index = 0;
    const auto below = [&](std::int32_t bound) {
      return static_cast<std::int32_t>(
          uniform_below({.seed = seed, .purpose = RandomPurpose::sample, .index = index++},
                        static_cast<std::uint64_t>(bound)));
    };
    std::vector<Merge> merges;
    for (std::int32_t result = 4; result < 40; ++result) {
      const Merge merge{below(result), below(result), result};
      const bool is_new = std::ranges::none_of(merges, [&](const Merge& each) {
        return each.left == merge.left && each.right == merge.right;
      });
      if (is_new) merges.push_back(merge);
    }
    const MergeTable table(merges);
    for (const std::size_t size : {1U, 2U, 3U, 17U, 48U, 49U, 200U}) {
      Symbols symbols(size);
      for (auto& symbol : symbols) symbol = below(4);
      CAPTURE(seed, size);
      CHECK(merged(symbols, table) == merged_plainly(symbols, merges));
    }
  }
}

TEST_CASE("Pair merger: without merges symbols stay", "[tokenizer]") {
  CHECK(merged({1, 2, 3}, MergeTable({})) == Symbols{1, 2, 3});
  CHECK(merged({}, MergeTable({})).empty());
}
