#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/parameter_groups.h"

namespace dstrain::optim {

std::unique_ptr<const Optimizer> make_optimizer(const config::OptimizerSettings& settings);

/// The groups of a run: one of all parameters, as DeepSpeed makes of a configuration, or a second
/// one of those that the settings do not decay. `undecayed`: the names of biases and norm weights.
ParameterGroups make_parameter_groups(const config::OptimizerSettings& settings,
                                      std::vector<std::string> undecayed);

}  // namespace dstrain::optim
