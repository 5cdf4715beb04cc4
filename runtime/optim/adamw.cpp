#include "runtime/optim/adamw.h"

#include <array>

#include "runtime/ops/adamw.h"

namespace dstrain::optim {

std::span<const std::string_view> AdamW::state_names() const {
  static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
  return names;
}

RuleScalars AdamW::scalars(const StepScalars& step) const {
  const Betas betas = step.betas.value_or(Betas{settings_.beta1, settings_.beta2});
  return rule_scalars(ops::adamw_scalars({.learning_rate = step.learning_rate,
                                          .beta1 = betas.beta1,
                                          .beta2 = betas.beta2,
                                          .eps = settings_.epsilon,
                                          .weight_decay = settings_.weight_decay,
                                          .decoupled = settings_.decoupled_decay,
                                          .bias_correction = settings_.bias_correction,
                                          .step = step.step}));
}

void AdamW::step(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const {
  ops::adamw({.parameters = shard.parameters,
              .gradients = shard.gradients,
              .exp_avg = shard.states[0],
              .exp_avg_sq = shard.states[1],
              .scalars = step.scalars.part(0, {ops::AdamWScalars::numel}),
              .decision = step.decision,
              .working = shard.working},
             stream);
}

}  // namespace dstrain::optim
