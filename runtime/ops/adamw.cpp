#include "runtime/ops/adamw.h"

#include <cmath>

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

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
  const Shape shape{range.parameters.numel()};
  require_f32(range.parameters, shape, "parameters");
  require_f32(range.gradients, shape, "gradients");
  require_f32(range.exp_avg, shape, "exp_avg");
  require_f32(range.exp_avg_sq, shape, "exp_avg_sq");
  if (!range.working.empty()) require_tensor(range.working, DType::bf16, shape, "working");
  op_table(stream).adamw(range, scalars, stream);
}

}  // namespace dstrain::ops
