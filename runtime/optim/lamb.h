#pragma once
#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// LAMB (You et al. 2020), as DeepSpeed's FusedLamb computes it: Adam's direction of each
/// parameter, with a length in proportion to the parameter's own. Keeps Adam's two states.
class Lamb final : public Optimizer {
 public:
  explicit Lamb(const config::LambSettings& settings) : settings_(settings) {}
  [[nodiscard]] std::span<const std::string_view> state_names() const override;
  [[nodiscard]] RuleScalars scalars(const StepScalars& step) const override;
  [[nodiscard]] std::int64_t sums() const override;
  void measure(const OptimizerShard& shard,
               const StepTensors& step,
               StreamView stream) const override;
  void step(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const override;

 private:
  config::LambSettings settings_;
};

}  // namespace dstrain::optim
