#pragma once
#include "runtime/ops/decide_step.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops {

/// Returns the decision that an update reads, for CPU kernels. Without one the step is taken, with
/// unscaled gradients.
inline StepDecision decision_in(const TensorView& decision) {
  return decision.empty() ? StepDecision() : *elements<StepDecision>(decision);
}

}  // namespace dstrain::ops
