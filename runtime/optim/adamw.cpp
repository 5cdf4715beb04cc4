#include "runtime/optim/adamw.h"

#include <array>

#include "runtime/ops/adamw.h"

namespace dstrain::optim {

std::span<const std::string_view> AdamW::state_names() const {
  static constexpr std::array<std::string_view, 2> names{"exp_avg", "exp_avg_sq"};
  return names;
}

void AdamW::step(const OptimizerShard& shard, const StepScalars& scalars, StreamView stream) const {
  const Betas betas = scalars.betas.value_or(Betas{settings_.beta1, settings_.beta2});
  ops::adamw({shard.parameters, shard.gradients, shard.states[0], shard.states[1], shard.working},
             ops::adamw_scalars({.learning_rate = scalars.learning_rate,
                                 .beta1 = betas.beta1,
                                 .beta2 = betas.beta2,
                                 .eps = settings_.epsilon,
                                 .weight_decay = settings_.weight_decay,
                                 .decoupled = settings_.decoupled_decay,
                                 .bias_correction = settings_.bias_correction,
                                 .step = scalars.step,
                                 .gradient_scale = scalars.gradient_scale}),
             stream);
}

}  // namespace dstrain::optim
