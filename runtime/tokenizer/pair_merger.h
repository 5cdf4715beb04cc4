#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tokenizer/merge_table.h"

namespace dstrain::tokenizer {

/// Byte-pair encoding of one word: repeatedly merges the pair of the lowest rank, leftmost first,
/// until none is left. Reuses its memory for all words. Not thread-safe.
class PairMerger {
 public:
  /// Write the symbols of the next word here; the caller clears it first.
  std::vector<std::int32_t>& symbols() { return symbols_; }
  /// Merges symbols() in place. For n symbols, takes n² steps if the word is short, else n log n.
  void merge(const MergeTable& merges);

 private:
  void merge_by_scanning(const MergeTable& merges);
  void merge_by_queue(const MergeTable& merges);
  void queue_pair(const MergeTable& merges, std::size_t left);

  static constexpr std::uint32_t no_place = MergeTable::no_rank;

  std::vector<std::int32_t> symbols_;
  std::vector<MergeTable::Found> pairs_;  ///< each symbol with the next one
  std::vector<std::uint32_t> next_;       ///< for the queue: neighbours of the remaining symbols
  std::vector<std::uint32_t> previous_;
  std::vector<std::uint64_t> queue_;  ///< rank and place of each pair, smallest first
};

}  // namespace dstrain::tokenizer
