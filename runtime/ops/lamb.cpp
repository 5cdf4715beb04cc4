#include "runtime/ops/lamb.h"

#include <cmath>

#include "runtime/ops/checks.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// What both passes have.
template <class Args>
void require_common(const Args& args) {
  const Shape shape{args.parameters.numel()};
  require_f32(args.parameters, shape, "parameters");
  require_f32(args.exp_avg, shape, "exp_avg");
  require_f32(args.exp_avg_sq, shape, "exp_avg_sq");
  require_f32(args.scalars, {LambScalars::numel}, "scalars");
  require_tensor(args.sums, DType::i64, {lamb_sums, lamb_sum_numel}, "sums");
  if (args.decision.empty()) return;
  require_tensor(args.decision, DType::f64, {StepDecision::numel}, "decision");
}

}  // namespace

LambScalars lamb_scalars(const LambSettings& settings) {
  const auto step = static_cast<double>(settings.step);
  const bool correct = settings.bias_correction;
  const double correction1 = correct ? 1.0 - std::pow(settings.beta1, step) : 1.0;
  const double root2 = correct ? std::sqrt(1.0 - std::pow(settings.beta2, step)) : 1.0;
  return {.decay = static_cast<float>(settings.weight_decay),
          .one_minus_beta1 = static_cast<float>(1.0 - settings.beta1),
          .beta2 = static_cast<float>(settings.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - settings.beta2),
          .eps = settings.eps_in_root ? 0.0F : static_cast<float>(settings.eps),
          .eps_in_root = settings.eps_in_root ? static_cast<float>(settings.eps) : 0.0F,
          .step_size = static_cast<float>(settings.learning_rate * root2 / correction1),
          .ratio_least = static_cast<float>(settings.ratio_least),
          .ratio_most = static_cast<float>(settings.ratio_most)};
}

void lamb_measure(const LambMeasureArgs& args, StreamView stream) {
  require_common(args);
  require_f32(args.gradients, {args.parameters.numel()}, "gradients");
  op_table(stream).lamb_measure(args, stream);
}

void lamb_update(const LambUpdateArgs& args, StreamView stream) {
  require_common(args);
  if (!args.working.empty()) require_half(args.working, {args.parameters.numel()}, "working");
  op_table(stream).lamb_update(args, stream);
}

}  // namespace dstrain::ops
