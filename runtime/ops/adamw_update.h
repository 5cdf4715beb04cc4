#pragma once
#include <cmath>

#include "runtime/ops/adamw.h"

namespace dstrain::ops {

// One element's part of adamw(), for the kernels of any device.

static_assert(sizeof(AdamWScalars) == AdamWScalars::numel * sizeof(float));

/// One element after the step.
struct AdamWElement {
  float p;
  float m;
  float v;
};

constexpr AdamWElement adamw_update(AdamWElement before,
                                    float gradient,
                                    float gradient_scale,
                                    const AdamWScalars& s) {
  const float g = std::fma(s.l2_decay, before.p, gradient * gradient_scale);
  const float m = std::fma(s.one_minus_beta1, g - before.m, before.m);
  const float v = std::fma(s.beta2, before.v, s.one_minus_beta2 * g * g);
  return {std::fma(-s.step_size, m / (std::sqrt(v) + s.eps), before.p * s.decay_factor), m, v};
}

}  // namespace dstrain::ops
