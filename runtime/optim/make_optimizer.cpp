#include "runtime/optim/make_optimizer.h"

#include "runtime/optim/adamw.h"
#include "runtime/optim/lamb.h"

namespace dstrain::optim {
namespace {

std::unique_ptr<const Optimizer> make(const config::AdamSettings& settings) {
  return std::make_unique<AdamW>(settings);
}
std::unique_ptr<const Optimizer> make(const config::LambSettings& settings) {
  return std::make_unique<Lamb>(settings);
}

}  // namespace

std::unique_ptr<const Optimizer> make_optimizer(const config::OptimizerSettings& settings) {
  return std::visit([](const auto& own) { return make(own); }, settings);
}

}  // namespace dstrain::optim
