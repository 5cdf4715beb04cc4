#pragma once
#include <cstdint>

namespace dstrain {

/// Optimizer steps of an epoch: the last one takes the samples that are left, unless it is dropped.
inline std::int64_t steps_per_epoch(std::int64_t samples,
                                    std::int64_t global_batch,
                                    bool drop_last) {
  return (samples + (drop_last ? 0 : global_batch - 1)) / global_batch;
}

}  // namespace dstrain
