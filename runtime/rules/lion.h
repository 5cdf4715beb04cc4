#pragma once
#include <cmath>

#include "runtime/rules/rule.h"

namespace dstrain::rules {

/// Lion (Chen et al. 2023, arXiv 2302.06675): steps by the sign of an interpolated momentum. An
/// element whose interpolation is 0 is only decayed, as in the paper; DeepSpeed's kernels move it
/// by the learning rate, up on GPUs and down on CPUs.
struct Lion {
  static constexpr std::array<std::string_view, 1> types{"Lion"};
  static constexpr double learning_rate = 1e-3;
  static constexpr std::array<std::string_view, 1> states{"exp_avg"};
  static constexpr std::string_view difference =
      "an element whose direction is 0 does not move, unlike DeepSpeed's";

  struct Settings {
    Betas betas{.beta1 = 0.9, .beta2 = 0.99};
    double weight_decay = 0;
  };
  static constexpr std::array<Parameter<Settings>, 2> parameters{{
      {"betas", &Settings::betas},
      {"weight_decay", &Settings::weight_decay},
  }};

  struct Scalars {
    float decay_factor = 1;  ///< 1 - lr wd
    float step_size = 0;     ///< lr
    float beta1 = 0;
    float one_minus_beta1 = 0;
    float beta2 = 0;
    float one_minus_beta2 = 0;
  };
  static Scalars scalars(const Settings& settings, const Step& step) {
    const Betas betas = step.betas.value_or(settings.betas);
    const double rate = step.learning_rate;
    return {.decay_factor = static_cast<float>(1.0 - rate * settings.weight_decay),
            .step_size = static_cast<float>(rate),
            .beta1 = static_cast<float>(betas.beta1),
            .one_minus_beta1 = static_cast<float>(1.0 - betas.beta1),
            .beta2 = static_cast<float>(betas.beta2),
            .one_minus_beta2 = static_cast<float>(1.0 - betas.beta2)};
  }

  /// p = decay_factor p - step_size sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g.
  /// NaN stays NaN.
  static constexpr float update(float p, float g, float (&state)[1], const Scalars& s) {
    float& m = state[0];
    const float direction = std::fma(s.beta1, m, s.one_minus_beta1 * g);
    const float sign = direction > 0 ? 1.0F : direction < 0 ? -1.0F : direction;
    m = std::fma(s.beta2, m, s.one_minus_beta2 * g);
    return std::fma(-s.step_size, sign, p * s.decay_factor);
  }
};

}  // namespace dstrain::rules
