#include "runtime/tokenizer/pair_merger.h"

#include <algorithm>
#include <functional>

namespace dstrain::tokenizer {
namespace {

/// Up to this length, scanning all pairs is faster than keeping a queue.
constexpr std::size_t scanned_symbols_max = 48;

std::uint64_t queued(std::uint32_t rank, std::size_t place) {
  return std::uint64_t{rank} << 32 | place;
}

}  // namespace

void PairMerger::merge(const MergeTable& merges) {
  if (symbols_.size() < 2) return;
  pairs_.resize(symbols_.size());
  for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) {
    pairs_[i] = merges.find(symbols_[i], symbols_[i + 1]);
  }
  pairs_.back() = {};
  if (symbols_.size() <= scanned_symbols_max) {
    merge_by_scanning(merges);
  } else {
    merge_by_queue(merges);
  }
}

void PairMerger::merge_by_scanning(const MergeTable& merges) {
  const auto earlier = [](const MergeTable::Found& a, const MergeTable::Found& b) {
    return a.rank < b.rank;
  };
  for (;;) {
    const auto best = std::min_element(pairs_.begin(), pairs_.end(), earlier);
    if (best->rank == MergeTable::no_rank) return;
    const std::ptrdiff_t left = best - pairs_.begin();
    const auto at = static_cast<std::size_t>(left);
    symbols_[at] = best->result;
    symbols_.erase(symbols_.begin() + left + 1);
    pairs_.erase(best);
    pairs_[at] = at + 1 < symbols_.size() ? merges.find(symbols_[at], symbols_[at + 1])
                                          : MergeTable::Found{};
    if (at > 0) pairs_[at - 1] = merges.find(symbols_[at - 1], symbols_[at]);
  }
}

void PairMerger::queue_pair(const MergeTable& merges, std::size_t left) {
  pairs_[left] = next_[left] == no_place ? MergeTable::Found{}
                                         : merges.find(symbols_[left], symbols_[next_[left]]);
  if (pairs_[left].rank == MergeTable::no_rank) return;
  queue_.push_back(queued(pairs_[left].rank, left));
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

void PairMerger::merge_by_queue(const MergeTable& merges) {
  const std::size_t count = symbols_.size();
  next_.resize(count);
  previous_.resize(count);
  queue_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    next_[i] = i + 1 < count ? static_cast<std::uint32_t>(i + 1) : no_place;
    previous_[i] = i > 0 ? static_cast<std::uint32_t>(i - 1) : no_place;
    if (pairs_[i].rank != MergeTable::no_rank) queue_.push_back(queued(pairs_[i].rank, i));
  }
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
  while (!queue_.empty()) {
    const std::uint64_t top = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
    const auto left = static_cast<std::uint32_t>(top);
    if (pairs_[left].rank != top >> 32) continue;  // stale: one of the two was merged since
    const std::uint32_t right = next_[left];
    symbols_[left] = pairs_[left].result;
    pairs_[right] = {};
    next_[left] = next_[right];
    if (next_[left] != no_place) previous_[next_[left]] = left;
    symbols_[right] = -1;
    queue_pair(merges, left);
    if (previous_[left] != no_place) queue_pair(merges, previous_[left]);
  }
  std::erase(symbols_, -1);
}

}  // namespace dstrain::tokenizer
