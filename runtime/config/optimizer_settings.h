#pragma once
#include "runtime/rules/registry.h"

namespace dstrain::config {

/// The optimizer, from the configuration or the training flags. ScheduleSettings has its learning
/// rate.
struct OptimizerSettings {
  rules::Settings rule{};
  bool decays_all = true;  ///< false: not biases and norm weights, like Hugging Face's Trainer
};

}  // namespace dstrain::config
