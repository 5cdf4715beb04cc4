#include "runtime/rules/lion.h"

namespace dstrain::rules {

Lion::Scalars Lion::scalars(const Settings& settings, const Step& step) {
  const Betas betas = step.betas.value_or(settings.betas);
  return {.decay_factor = static_cast<float>(1.0 - step.learning_rate * settings.weight_decay),
          .step_size = static_cast<float>(step.learning_rate),
          .beta1 = static_cast<float>(betas.beta1),
          .one_minus_beta1 = static_cast<float>(1.0 - betas.beta1),
          .beta2 = static_cast<float>(betas.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - betas.beta2)};
}

}  // namespace dstrain::rules
