#include "runtime/optim/lamb.h"

#include <array>

#include "runtime/ops/lamb.h"

namespace dstrain::optim {

std::span<const std::string_view> Lamb::state_names() const {
  static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
  return names;
}

RuleScalars Lamb::scalars(const StepScalars& step) const {
  const Betas betas = step.betas.value_or(Betas{settings_.beta1, settings_.beta2});
  return rule_scalars(ops::lamb_scalars({.learning_rate = step.learning_rate,
                                         .beta1 = betas.beta1,
                                         .beta2 = betas.beta2,
                                         .eps = settings_.epsilon,
                                         .eps_in_root = settings_.eps_inside_sqrt,
                                         .weight_decay = settings_.weight_decay,
                                         .bias_correction = settings_.bias_correction,
                                         .ratio_least = settings_.min_coeff,
                                         .ratio_most = settings_.max_coeff,
                                         .step = step.step}));
}

std::int64_t Lamb::sums() const {
  static_assert(sum_numel == ops::lamb_sum_numel);
  return ops::lamb_sums;
}

void Lamb::measure(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const {
  for (const ParameterSpan& span : shard.spans) {
    const auto part = [&span](const TensorView& values) {
      return values.part(span.offset, {span.numel});
    };
    ops::lamb_measure({.parameters = part(shard.parameters),
                       .gradients = part(shard.gradients),
                       .exp_avg = part(shard.states[0]),
                       .exp_avg_sq = part(shard.states[1]),
                       .scalars = step.scalars.part(0, {ops::LambScalars::numel}),
                       .sums = span.sums,
                       .decision = step.decision},
                      stream);
  }
}

void Lamb::step(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const {
  for (const ParameterSpan& span : shard.spans) {
    const auto part = [&span](const TensorView& values) {
      return values.empty() ? values : values.part(span.offset, {span.numel});
    };
    ops::lamb_update({.parameters = part(shard.parameters),
                      .exp_avg = part(shard.states[0]),
                      .exp_avg_sq = part(shard.states[1]),
                      .scalars = step.scalars.part(0, {ops::LambScalars::numel}),
                      .sums = span.sums,
                      .decision = step.decision,
                      .working = part(shard.working)},
                     stream);
  }
}

}  // namespace dstrain::optim
