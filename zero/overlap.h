#pragma once
#include <cstdint>
#include <limits>

namespace dstrain::zero {

/// How far communication overlaps computation, and how much memory it may hold for that.
struct Overlap {
  /// Communication has its own stream. Gradients are reduced from one of two buckets while backward
  /// fills the other, and units are gathered ahead within the limits below.
  bool enabled = false;
  /// Stage 3: the next segment of the next unit is prefetched while fewer elements than this are
  /// being prefetched; never more than one unit. 0: no prefetch.
  std::int64_t prefetch_numel = 0;
  /// Stage 3: no prefetch that would bring the gathered elements above this.
  std::int64_t live_numel = std::numeric_limits<std::int64_t>::max();
  /// Stage 3: a segment is dropped after use if more elements than this are gathered before its
  /// next use.
  std::int64_t reuse_numel = std::numeric_limits<std::int64_t>::max();
};

}  // namespace dstrain::zero
