#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tokenizer/merge_table.h"

namespace dstrain::tokenizer {

/// Byte-pair encoding of one word: merges the pair of the lowest rank, the leftmost of equals,
/// until no pair is left. It keeps its memory between words, so it belongs to one thread at a time.
class PairMerger {
 public:
  /// Where the symbols of the next word go; the caller clears it.
  std::vector<std::int32_t>& symbols() { return symbols_; }
  /// Merges symbols() in place. Of n symbols: n² steps for a short word, n log n for a long one.
  void merge(const MergeTable& merges);

 private:
  void merge_by_scanning(const MergeTable& merges);
  void merge_by_queue(const MergeTable& merges);
  void queue_pair(const MergeTable& merges, std::size_t left);

  static constexpr std::uint32_t no_place = MergeTable::no_rank;

  std::vector<std::int32_t> symbols_;
  std::vector<MergeTable::Found> pairs_;  ///< of each symbol and the next one
  std::vector<std::uint32_t> next_;       ///< of the queue: the neighbours of what is left
  std::vector<std::uint32_t> previous_;
  std::vector<std::uint64_t> queue_;  ///< rank and place of each pair, the smallest on top
};

}  // namespace dstrain::tokenizer
