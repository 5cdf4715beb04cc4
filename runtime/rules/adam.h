#pragma once
#include <cmath>

#include "runtime/rules/rule.h"

namespace dstrain::rules {

/// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim computes them.
struct Adam {
  static constexpr std::array<std::string_view, 2> types{"AdamW", "Adam"};
  static constexpr double learning_rate = 1e-3;
  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};

  struct Settings {
    Betas betas{};
    double epsilon = 1e-8;
    double weight_decay = 0;
    bool bias_correction = true;  ///< divide the moments by 1 - beta^step
    bool decoupled_decay = true;  ///< AdamW: decay the parameter; Adam: add wd p to the gradient
  };
  static constexpr std::array<Parameter<Settings>, 4> parameters{{
      {"betas", &Settings::betas},
      {"eps", &Settings::epsilon},
      {"weight_decay", &Settings::weight_decay},
      {"bias_correction", &Settings::bias_correction},
  }};
  static constexpr std::string_view type_of(const Settings& settings) {
    return settings.decoupled_decay ? types[0] : types[1];
  }

  struct Scalars {
    float l2_decay = 0;      ///< times the parameter, added to the gradient (Adam)
    float decay_factor = 1;  ///< 1 - lr wd (AdamW)
    float one_minus_beta1 = 0;
    float beta2 = 0;
    float one_minus_beta2 = 0;
    float eps = 0;        ///< eps sqrt(1 - beta2^step)
    float step_size = 0;  ///< lr sqrt(1 - beta2^step) / (1 - beta1^step)
  };
  static Scalars scalars(const Settings& settings, const Step& step) {
    const Betas betas = step.betas.value_or(settings.betas);
    const double rate = step.learning_rate;
    const double decay = settings.weight_decay;
    const auto correction =
        settings.bias_correction ? BiasCorrection::of(betas, step.number) : BiasCorrection{};
    const bool decoupled = settings.decoupled_decay;
    return {.l2_decay = decoupled ? 0.0F : static_cast<float>(decay),
            .decay_factor = decoupled ? static_cast<float>(1.0 - rate * decay) : 1.0F,
            .one_minus_beta1 = static_cast<float>(1.0 - betas.beta1),
            .beta2 = static_cast<float>(betas.beta2),
            .one_minus_beta2 = static_cast<float>(1.0 - betas.beta2),
            .eps = static_cast<float>(settings.epsilon * correction.second_root),
            .step_size = static_cast<float>(rate * correction.second_root / correction.first)};
  }

  /// g += l2_decay p;  p *= decay_factor;  m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g
  /// g; p -= step_size m / (sqrt(v) + eps). The correction of the second moment is in step_size and
  /// eps, which saves a division.
  static constexpr float update(float p, float gradient, float (&state)[2], const Scalars& s) {
    auto& [m, v] = state;
    const float g = std::fma(s.l2_decay, p, gradient);
    m = std::fma(s.one_minus_beta1, g - m, m);
    v = std::fma(s.beta2, v, s.one_minus_beta2 * g * g);
    return std::fma(-s.step_size, m / (std::sqrt(v) + s.eps), p * s.decay_factor);
  }
};

}  // namespace dstrain::rules
