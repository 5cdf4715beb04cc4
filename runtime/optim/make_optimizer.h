#pragma once
#include <memory>

#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

std::unique_ptr<const Optimizer> make_optimizer(const config::OptimizerSettings& settings);

}  // namespace dstrain::optim
