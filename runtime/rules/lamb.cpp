#include "runtime/rules/lamb.h"

namespace dstrain::rules {

Lamb::Scalars Lamb::scalars(const Settings& settings, const Step& step) {
  const auto number = static_cast<double>(step.number);
  const Betas betas = step.betas.value_or(settings.betas);
  const bool correct = settings.bias_correction;
  const double correction1 = correct ? 1.0 - std::pow(betas.beta1, number) : 1.0;
  const double root2 = correct ? std::sqrt(1.0 - std::pow(betas.beta2, number)) : 1.0;
  const auto epsilon = static_cast<float>(settings.epsilon);
  return {.decay = static_cast<float>(settings.weight_decay),
          .one_minus_beta1 = static_cast<float>(1.0 - betas.beta1),
          .beta2 = static_cast<float>(betas.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - betas.beta2),
          .eps = settings.eps_inside_sqrt ? 0.0F : epsilon,
          .eps_in_root = settings.eps_inside_sqrt ? epsilon : 0.0F,
          .step_size = static_cast<float>(step.learning_rate * root2 / correction1),
          .ratio_min = static_cast<float>(settings.min_coeff),
          .ratio_max = static_cast<float>(settings.max_coeff)};
}

}  // namespace dstrain::rules
