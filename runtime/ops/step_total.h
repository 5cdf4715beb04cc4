#pragma once
#include <algorithm>

#include "runtime/ops/decide_step.h"

namespace dstrain::ops {

// The computation of decide_step(), for the kernels of any device.

/// A row of the totals: one rank's.
struct StepTotal {
  ExactSum squares;
  double loss = 0;
  constexpr void add(const StepTotal& other) {
    squares.add(other.squares);
    loss += other.loss;
  }
};
static_assert(sizeof(StepTotal) == step_total_numel * sizeof(std::int64_t));
static_assert(sizeof(StepDecision) == StepDecision::numel * sizeof(double));

/// The figures of all ranks together.
struct StepFigures {
  double loss_sum;
  double labels;
  double norm;  ///< of gradients that still have the loss scale
  double loss_scale;
};

constexpr StepDecision decision_of(const StepFigures& all, double norm_max) {
  const auto finite = [](double value) {
    return value - value == 0;
  };
  StepDecision decision;
  decision.loss = all.loss_sum / all.labels;
  decision.gradient_norm = all.norm / all.loss_scale;
  decision.taken = finite(decision.loss) && finite(decision.gradient_norm) ? 1 : 0;
  decision.gradient_scale = clip_scale(decision.gradient_norm, norm_max) / all.loss_scale;
  return decision;
}

}  // namespace dstrain::ops
