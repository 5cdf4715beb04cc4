#include "runtime/rules/adam.h"

namespace dstrain::rules {

Adam::Scalars Adam::scalars(const Settings& settings, const Step& step) {
  const auto number = static_cast<double>(step.number);
  const Betas betas = step.betas.value_or(settings.betas);
  const bool correct = settings.bias_correction;
  const double correction1 = correct ? 1.0 - std::pow(betas.beta1, number) : 1.0;
  const double root2 = correct ? std::sqrt(1.0 - std::pow(betas.beta2, number)) : 1.0;
  const double decay = settings.weight_decay;
  const bool decoupled = settings.decoupled_decay;
  return {.l2_decay = decoupled ? 0.0F : static_cast<float>(decay),
          .decay_factor = decoupled ? static_cast<float>(1.0 - step.learning_rate * decay) : 1.0F,
          .one_minus_beta1 = static_cast<float>(1.0 - betas.beta1),
          .beta2 = static_cast<float>(betas.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - betas.beta2),
          .eps = static_cast<float>(settings.epsilon * root2),
          .step_size = static_cast<float>(step.learning_rate * root2 / correction1)};
}

}  // namespace dstrain::rules
