#pragma once
#include <cstdint>

namespace dstrain {

/// Returns the optimizer steps of an epoch. The last one takes the remaining samples, unless it is
/// dropped.
inline std::int64_t steps_per_epoch(std::int64_t samples,
                                    std::int64_t global_batch,
                                    bool drop_last) {
  return (samples + (drop_last ? 0 : global_batch - 1)) / global_batch;
}

}  // namespace dstrain
