#pragma once
#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim computes them.
/// Elementwise. Keeps two states per parameter.
class AdamW final : public Optimizer {
 public:
  explicit AdamW(const config::AdamSettings& settings) : settings_(settings) {}
  [[nodiscard]] std::span<const std::string_view> state_names() const override;
  [[nodiscard]] RuleScalars scalars(const StepScalars& step) const override;
  void step(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const override;

 private:
  config::AdamSettings settings_;
};

}  // namespace dstrain::optim
