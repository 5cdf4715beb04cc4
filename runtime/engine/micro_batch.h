#pragma once
#include <cstdint>
#include <span>

namespace dstrain::engine {

/// What one rank trains on or evaluates at once.
struct MicroBatch {
  std::span<const std::int32_t> tokens;  ///< (B, T)
  std::span<const std::int32_t> labels;  ///< (B, T); -100 does not count; none: nothing has a loss
  std::int64_t first_sample = 0;  ///< index of sequence 0 within the global batch of the step
};

/// The labels that count.
std::int64_t counted_labels(std::span<const MicroBatch> batches);

}  // namespace dstrain::engine
