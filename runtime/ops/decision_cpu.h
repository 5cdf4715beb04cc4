#pragma once
#include "runtime/ops/decide_step.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops {

/// What an update reads of a decision, for kernels of the CPU; without one the step is taken, with
/// gradients as they are.
inline StepDecision decision_in(const TensorView& decision) {
  return decision.empty() ? StepDecision() : *elements<StepDecision>(decision);
}

}  // namespace dstrain::ops
