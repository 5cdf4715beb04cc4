#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dstrain::tokenizer {

/// One merge of byte-pair encoding: two adjacent tokens become one.
struct Merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t result = 0;
};

/// Maps a pair to its result and rank; lower ranks are merged earlier. A hash table with open
/// addressing, at most half full. Immutable.
class MergeTable {
 public:
  static constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();

  struct Found {
    std::uint32_t rank = no_rank;
    std::int32_t result = 0;
  };

  /// The index of a merge is its rank. If a pair appears twice, the last one counts.
  explicit MergeTable(const std::vector<Merge>& merges)
      : slots_(std::bit_ceil(2 * merges.size() + 1)), shift_(64 - std::countr_zero(slots_.size())) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const Merge& merge = merges[rank];
      const std::uint64_t pair = key(merge.left, merge.right);
      std::size_t at = home(pair);
      while (slots_[at].pair != pair && slots_[at].pair != no_pair) at = next(at);
      slots_[at] = {.pair = pair,
                    .found = {.rank = static_cast<std::uint32_t>(rank), .result = merge.result}};
    }
  }

  /// Returns the result of merging `left` and `right`; its rank is no_rank if they do not merge.
  [[nodiscard]] Found find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair = key(left, right);
    std::size_t at = home(pair);
    while (slots_[at].pair != pair) {
      if (slots_[at].pair == no_pair) return {};
      at = next(at);
    }
    return slots_[at].found;
  }

 private:
  static constexpr std::uint64_t no_pair = std::numeric_limits<std::uint64_t>::max();

  struct Slot {
    std::uint64_t pair = no_pair;
    Found found;
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  [[nodiscard]] std::size_t home(std::uint64_t pair) const {
    constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15;
    return shift_ == 64 ? 0 : static_cast<std::size_t>(pair * golden_ratio >> shift_);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace dstrain::tokenizer
