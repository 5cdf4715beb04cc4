#pragma once
#include "runtime/rules/registry.h"

namespace dstrain::config {

/// The optimizer section of a configuration, or the training flags, but for the learning rate,
/// which ScheduleSettings has.
struct OptimizerSettings {
  rules::Settings rule{};
  bool decays_all = true;  ///< false: not biases and norm weights, as Hugging Face's Trainer
};

}  // namespace dstrain::config
