#pragma once
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/decide_step.h"

namespace dstrain::ops::gpu {

/// Whether the update is applied. Null: it is applied, with unscaled gradients.
DSTRAIN_DEVICE bool is_taken(const StepDecision* decision) {
  return decision == nullptr || decision->is_taken();
}
DSTRAIN_DEVICE float gradient_scale(const StepDecision* decision) {
  return decision == nullptr ? 1.0F : static_cast<float>(decision->gradient_scale);
}

}  // namespace dstrain::ops::gpu
