#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/config/train_options.h"
#include "runtime/config/train_settings.h"
#include "runtime/model/model.h"
#include "zero/plan_search.h"

namespace dstrain::cmd {

/// Whether a step's time can be predicted there: rates are those of CPUs.
constexpr bool predicts_time(DeviceKind device) {
  return device == DeviceKind::cpu;
}

/// Returns the "zero_optimization" section that asks for a choice.
nlohmann::ordered_json zero_section(const zero::PlanChoice& choice);

/// A training run of which stage, offload and, unless it was typed, checkpointing are open. A
/// choice becomes a configuration, which goes through what a run's goes through: so its memory plan
/// is the run's, and only what a run accepts is offered.
class PlanSetup {
 public:
  /// Throws Error{usage, config, input}: also for options that name a configuration.
  /// Plans for a kind of device whether there is one here or not.
  PlanSetup(config::TrainOptions options, int world, DeviceKind device);

  /// Every choice among `tiers` with what it takes. The cost is that of step_cost(), or, of a
  /// device whose time is not predicted, the bytes that a rank moves in a step.
  [[nodiscard]] std::vector<zero::PlanRow> rows(std::span<const MemoryTier> tiers) const;
  /// The configuration that asks for a choice, indented JSON.
  [[nodiscard]] std::string ds_config(const zero::PlanChoice& choice) const;

  [[nodiscard]] const config::TrainSettings& settings() const { return settings_; }
  [[nodiscard]] const model::Model& model() const { return model_; }

 private:
  [[nodiscard]] zero::PlanRow row(const zero::PlanChoice& choice) const;

  config::TrainOptions options_;
  int world_;
  config::TrainSettings settings_;  ///< of what is not open
  model::Model model_;
};

}  // namespace dstrain::cmd
