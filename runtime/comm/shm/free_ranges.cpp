#include "runtime/comm/shm/free_ranges.h"

#include <iterator>

#include "runtime/base/error.h"

namespace dstrain::comm {

FreeRanges::FreeRanges(Bytes end) {
  if (end > 0) ranges_.emplace(0, end);
}

std::optional<Bytes> FreeRanges::take(Bytes bytes, Bytes alignment) {
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const auto [begin, end] = *range;
    const Bytes taken = round_up(begin, alignment);
    if (taken > end || end - taken < bytes) continue;
    ranges_.erase(range);
    if (begin < taken) ranges_.emplace(begin, taken);
    if (taken + bytes < end) ranges_.emplace(taken + bytes, end);
    return taken;
  }
  return std::nullopt;
}

void FreeRanges::give_back(Bytes begin, Bytes bytes) {
  Bytes end = begin + bytes;
  auto after = ranges_.lower_bound(begin);
  DSTRAIN_CHECK(after == ranges_.end() || end <= after->first, "{} bytes at {} are free already",
                bytes, begin);
  if (after != ranges_.end() && after->first == end) {
    end = after->second;
    after = ranges_.erase(after);
  }
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    DSTRAIN_CHECK(before->second <= begin, "{} bytes at {} are free already", bytes, begin);
    if (before->second == begin) {
      before->second = end;
      return;
    }
  }
  ranges_.emplace(begin, end);
}

Bytes FreeRanges::free_bytes() const {
  Bytes sum = 0;
  for (const auto& [begin, end] : ranges_) sum += end - begin;
  return sum;
}

}  // namespace dstrain::comm
