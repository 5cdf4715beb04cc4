#include "runtime/ops/adamw.h"

#include <cmath>

#include "runtime/ops/checks.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

AdamWScalars adamw_scalars(const AdamWSettings& settings) {
  const auto step = static_cast<double>(settings.step);
  const bool correct = settings.bias_correction;
  const double correction1 = correct ? 1.0 - std::pow(settings.beta1, step) : 1.0;
  const double root2 = correct ? std::sqrt(1.0 - std::pow(settings.beta2, step)) : 1.0;
  const double decay = settings.weight_decay;
  AdamWScalars scalars;
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

void adamw(const AdamWArgs& args, StreamView stream) {
  const Shape shape{args.parameters.numel()};
  require_f32(args.parameters, shape, "parameters");
  require_f32(args.gradients, shape, "gradients");
  require_f32(args.exp_avg, shape, "exp_avg");
  require_f32(args.exp_avg_sq, shape, "exp_avg_sq");
  require_f32(args.scalars, {AdamWScalars::numel}, "scalars");
  if (!args.decision.empty()) {
    require_tensor(args.decision, DType::f64, {StepDecision::numel}, "decision");
  }
  if (!args.working.empty()) require_half(args.working, shape, "working");
  op_table(stream).adamw(args, stream);
}

}  // namespace dstrain::ops
