#include <cmath>

#include "runtime/base/check.h"
#include "runtime/ops/adamw.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// One element after the step.
struct Updated {
  float p;
  float m;
  float v;
};

inline Updated update(float p, float gradient, float m, float v, const AdamWScalars& s) {
  const float g = std::fma(s.l2_decay, p, gradient * s.gradient_scale);
  m = std::fma(s.one_minus_beta1, g - m, m);
  v = std::fma(s.beta2, v, s.one_minus_beta2 * g * g);
  return {std::fma(-s.step_size, m / (std::sqrt(v) + s.eps), p * s.decay_factor), m, v};
}

DSTRAIN_SIMD_CLONES
void update_all(float* __restrict parameters,
                const float* __restrict gradients,
                float* __restrict exp_avg,
                float* __restrict exp_avg_sq,
                std::int64_t count,
                const AdamWScalars& scalars) {
  const AdamWScalars s = scalars;
  for (std::int64_t i = 0; i < count; ++i) {
    const Updated to = update(parameters[i], gradients[i], exp_avg[i], exp_avg_sq[i], s);
    parameters[i] = to.p;
    exp_avg[i] = to.m;
    exp_avg_sq[i] = to.v;
  }
}

DSTRAIN_SIMD_CLONES
void update_all(float* __restrict parameters,
                const float* __restrict gradients,
                float* __restrict exp_avg,
                float* __restrict exp_avg_sq,
                BFloat16* __restrict working,
                std::int64_t count,
                const AdamWScalars& scalars) {
  const AdamWScalars s = scalars;
  for (std::int64_t i = 0; i < count; ++i) {
    const Updated to = update(parameters[i], gradients[i], exp_avg[i], exp_avg_sq[i], s);
    parameters[i] = to.p;
    exp_avg[i] = to.m;
    exp_avg_sq[i] = to.v;
    working[i] = to_bfloat16(to.p);
  }
}

void update_chunk(const AdamWRange& range,
                  std::int64_t begin,
                  std::int64_t count,
                  const AdamWScalars& scalars) {
  float* const p = range.parameters.data() + begin;
  const float* const g = range.gradients.data() + begin;
  float* const m = range.exp_avg.data() + begin;
  float* const v = range.exp_avg_sq.data() + begin;
  if (range.working.empty()) {
    update_all(p, g, m, v, count, scalars);
  } else {
    update_all(p, g, m, v, range.working.data() + begin, count, scalars);
  }
}

}  // namespace

AdamWScalars adamw_scalars(const AdamWSettings& settings) {
  const auto step = static_cast<double>(settings.step);
  const bool correct = settings.bias_correction;
  const double correction1 = correct ? 1.0 - std::pow(settings.beta1, step) : 1.0;
  const double root2 = correct ? std::sqrt(1.0 - std::pow(settings.beta2, step)) : 1.0;
  const double decay = settings.weight_decay;
  AdamWScalars scalars;
  scalars.gradient_scale = static_cast<float>(settings.gradient_scale);
  scalars.l2_decay = settings.decoupled ? 0.0F : static_cast<float>(decay);
  scalars.decay_factor =
      settings.decoupled ? static_cast<float>(1.0 - settings.learning_rate * decay) : 1.0F;
  scalars.one_minus_beta1 = static_cast<float>(1.0 - settings.beta1);
  scalars.beta2 = static_cast<float>(settings.beta2);
  scalars.one_minus_beta2 = static_cast<float>(1.0 - settings.beta2);
  scalars.eps = static_cast<float>(settings.eps * root2);
  scalars.step_size = static_cast<float>(settings.learning_rate * root2 / correction1);
  return scalars;
}

void adamw(const AdamWRange& range, const AdamWScalars& scalars, StreamView stream) {
  const auto numel = range.parameters.size();
  DSTRAIN_CHECK(range.gradients.size() == numel && range.exp_avg.size() == numel &&
                    range.exp_avg_sq.size() == numel &&
                    (range.working.empty() || range.working.size() == numel),
                "parameters {}, gradients {}, exp_avg {}, exp_avg_sq {}, working {}", numel,
                range.gradients.size(), range.exp_avg.size(), range.exp_avg_sq.size(),
                range.working.size());
  stream.launch([range, scalars] {
    for_chunks(static_cast<std::int64_t>(range.parameters.size()), elementwise_chunk,
               [&](std::int64_t begin, std::int64_t end) {
                 update_chunk(range, begin, end - begin, scalars);
               });
  });
}

}  // namespace dstrain::ops
