#pragma once
#include <algorithm>
#include <cmath>

#include "runtime/ops/lamb.h"

namespace dstrain::ops {

// One element's part of lamb_measure() and lamb_update(), for the kernels of any device.

static_assert(sizeof(LambScalars) == LambScalars::numel * sizeof(float));

/// The moments of one element.
struct LambElement {
  float m;
  float v;
};

constexpr LambElement lamb_moments(LambElement before, float gradient, const LambScalars& s) {
  return {std::fma(s.one_minus_beta1, gradient - before.m, before.m),
          std::fma(s.beta2, before.v, s.one_minus_beta2 * gradient * gradient)};
}

constexpr float lamb_update_of(float p, LambElement moments, const LambScalars& s) {
  return std::fma(s.decay, p, moments.m / (std::sqrt(moments.v + s.eps_in_root) + s.eps));
}

constexpr float lamb_updated(float p, LambElement moments, float step_size, const LambScalars& s) {
  return std::fma(-step_size, lamb_update_of(p, moments, s), p);
}

/// From the norms of a parameter and of its update.
constexpr float lamb_trust_ratio(double values, double update, const LambScalars& s) {
  if (values == 0 || update == 0) return 1;
  return std::clamp(static_cast<float>(values / update), s.ratio_least, s.ratio_most);
}

}  // namespace dstrain::ops
