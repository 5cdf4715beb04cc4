#pragma once
#include <cmath>
#include <cstdint>

namespace dstrain {

/// Optimizer steps of an epoch: the last one takes the samples that are left, unless it is dropped.
inline std::int64_t steps_per_epoch(std::int64_t samples,
                                    std::int64_t global_batch,
                                    bool drop_last) {
  return (samples + (drop_last ? 0 : global_batch - 1)) / global_batch;
}

/// Optimizer steps of a run: `max_steps`, or if that is not positive those of its epochs.
inline std::int64_t training_steps(std::int64_t max_steps,
                                   double num_train_epochs,
                                   std::int64_t steps_per_epoch) {
  if (max_steps > 0) return max_steps;
  return static_cast<std::int64_t>(
      std::ceil(num_train_epochs * static_cast<double>(steps_per_epoch)));
}

}  // namespace dstrain
