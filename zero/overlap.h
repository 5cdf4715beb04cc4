#pragma once
#include <cstdint>
#include <limits>

namespace dstrain::zero {

/// How far communication may run beside computing, and what it may hold for that.
struct Overlap {
  /// Communication has a stream of its own: gradients are reduced from one of two buckets while
  /// the backward fills the other, and units are gathered ahead within the limits below.
  bool enabled = false;
  /// Stage 3: a segment of the next unit is begun to be gathered while one computes as long as
  /// fewer elements than this are on their way; never more than one unit. 0: nothing is.
  std::int64_t prefetch_numel = 0;
  /// ... unless more elements than this would be gathered at a time.
  std::int64_t live_numel = std::numeric_limits<std::int64_t>::max();
  /// Stage 3: what is next used after gathering more elements than this is dropped after use.
  std::int64_t reuse_numel = std::numeric_limits<std::int64_t>::max();
};

}  // namespace dstrain::zero
