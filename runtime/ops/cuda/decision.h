#pragma once
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/decide_step.h"

namespace dstrain::ops::gpu {

/// What an update reads of a decision; without one, null, the step is taken, with gradients as they
/// are.
DSTRAIN_DEVICE bool is_taken(const StepDecision* decision) {
  return decision == nullptr || decision->is_taken();
}
DSTRAIN_DEVICE float gradient_scale(const StepDecision* decision) {
  return decision == nullptr ? 1.0F : static_cast<float>(decision->gradient_scale);
}

}  // namespace dstrain::ops::gpu
