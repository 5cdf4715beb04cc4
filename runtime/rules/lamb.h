#pragma once
#include <algorithm>
#include <cmath>

#include "runtime/rules/rule.h"

namespace dstrain::rules {

/// LAMB (You et al. 2020, arXiv 1904.00962), as DeepSpeed's FusedLamb computes it: Adam's change of
/// each parameter, scaled to the parameter's own norm. Layerwise.
struct Lamb {
  static constexpr std::array<std::string_view, 1> types{"Lamb"};
  static constexpr double learning_rate = 1e-3;
  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};

  struct Settings {
    Betas betas{};
    double epsilon = 1e-8;
    bool eps_inside_sqrt = false;  ///< add epsilon to the second moment, not to its root
    double weight_decay = 0;
    bool bias_correction = true;
    double max_coeff = 10;  ///< bounds of the trust ratio
    double min_coeff = 0.01;
  };
  static constexpr std::array<Parameter<Settings>, 7> parameters{{
      {"betas", &Settings::betas},
      {"eps", &Settings::epsilon},
      {"eps_inside_sqrt", &Settings::eps_inside_sqrt},
      {"weight_decay", &Settings::weight_decay},
      {"bias_correction", &Settings::bias_correction},
      {"max_coeff", &Settings::max_coeff},
      {"min_coeff", &Settings::min_coeff},
  }};

  struct Scalars {
    float decay = 0;
    float one_minus_beta1 = 0;
    float beta2 = 0;
    float one_minus_beta2 = 0;
    float eps = 0;          ///< added to the root of the second moment
    float eps_in_root = 0;  ///< added to the second moment
    float step_size = 0;    ///< lr sqrt(1 - beta2^step) / (1 - beta1^step)
    float ratio_min = 0;
    float ratio_max = 0;
  };
  static Scalars scalars(const Settings& settings, const Step& step) {
    const Betas betas = step.betas.value_or(settings.betas);
    const auto epsilon = static_cast<float>(settings.epsilon);
    const auto correction =
        settings.bias_correction ? BiasCorrection::of(betas, step.number) : BiasCorrection{};
    return {.decay = static_cast<float>(settings.weight_decay),
            .one_minus_beta1 = static_cast<float>(1.0 - betas.beta1),
            .beta2 = static_cast<float>(betas.beta2),
            .one_minus_beta2 = static_cast<float>(1.0 - betas.beta2),
            .eps = settings.eps_inside_sqrt ? 0.0F : epsilon,
            .eps_in_root = settings.eps_inside_sqrt ? epsilon : 0.0F,
            .step_size =
                static_cast<float>(step.learning_rate * correction.second_root / correction.first),
            .ratio_min = static_cast<float>(settings.min_coeff),
            .ratio_max = static_cast<float>(settings.max_coeff)};
  }

  /// m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g g;
  /// change = m / (sqrt(v + eps_in_root) + eps) + decay p
  static constexpr float measure(float p, float g, float (&state)[2], const Scalars& s) {
    auto& [m, v] = state;
    m = std::fma(s.one_minus_beta1, g - m, m);
    v = std::fma(s.beta2, v, s.one_minus_beta2 * g * g);
    return change(p, state, s);
  }
  /// |p| / |change| within its bounds; 1 where one of the norms is 0.
  static constexpr float trust_ratio(double values, double change, const Scalars& s) {
    if (values == 0 || change == 0) return 1;
    return std::clamp(static_cast<float>(values / change), s.ratio_min, s.ratio_max);
  }
  /// p -= rate change, where rate is step_size times the trust ratio. step_size alone corrects the
  /// moments for their start, so it scales the decay, too.
  static constexpr float update(float p, const float (&state)[2], float rate, const Scalars& s) {
    return std::fma(-rate, change(p, state, s), p);
  }

 private:
  static constexpr float change(float p, const float (&state)[2], const Scalars& s) {
    const auto& [m, v] = state;
    return std::fma(s.decay, p, m / (std::sqrt(v + s.eps_in_root) + s.eps));
  }
};

}  // namespace dstrain::rules
