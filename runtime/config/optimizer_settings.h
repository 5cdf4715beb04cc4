#pragma once
#include <variant>

namespace dstrain::config {

// The optimizer section of a configuration, or the training flags, with DeepSpeed's defaults.

/// Adam and AdamW.
struct AdamSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  ///< AdamW; false: L2 added to the gradient
  bool bias_correction = true;
  bool decays_all = true;  ///< false: not biases and norm weights, as Hugging Face's Trainer
};

struct LambSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool eps_inside_sqrt = false;  ///< epsilon is added to the second moment, not to its root
  double weight_decay = 0;
  bool bias_correction = true;
  double max_coeff = 10;  ///< bounds of the trust ratio
  double min_coeff = 0.01;
};

using OptimizerSettings = std::variant<AdamSettings, LambSettings>;

inline double learning_rate(const OptimizerSettings& settings) {
  return std::visit([](const auto& own) { return own.learning_rate; }, settings);
}

/// Whether a step needs to know of whole parameters, which are there once all gradients are.
inline bool takes_sums(const OptimizerSettings& settings) {
  return std::holds_alternative<LambSettings>(settings);
}

}  // namespace dstrain::config
