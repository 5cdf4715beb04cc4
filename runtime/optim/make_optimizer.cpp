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

ParameterGroups make_parameter_groups(const config::OptimizerSettings& settings,
                                      std::vector<std::string> undecayed) {
  const auto* const adam = std::get_if<config::AdamSettings>(&settings);
  const bool spares = adam != nullptr && !adam->decays_all && adam->weight_decay > 0;
  if (!spares || undecayed.empty()) return ParameterGroups(make_optimizer(settings));
  config::AdamSettings without = *adam;
  without.weight_decay = 0;
  std::vector<ParameterGroup> groups(2);
  groups[0].optimizer = make_optimizer(settings);
  groups[1].optimizer = make_optimizer(without);
  groups[1].names = std::move(undecayed);
  return ParameterGroups(std::move(groups));
}

}  // namespace dstrain::optim
