#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/device/stream.h"
#include "runtime/rules/registry.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::optim {

/// Values that change from step to step.
struct StepScalars {
  rules::Step update{};
  double loss_scale = 1;      ///< factor of the loss, and so of the gradients
  std::int64_t rounding = 0;  ///< key of stochastic rounding
};

/// Inputs of the updates of a step, on their device.
struct StepTensors {
  TensorView scalars;  ///< f32: rules::ScalarValues (16), or those of each parameter group (G, 16)
  TensorView decision{};  ///< (StepDecision::numel) f64; empty: taken, with gradients as they are
  TensorView rounding{};  ///< (1) i64: key of stochastic rounding
};

/// The range of a flat run that holds one parameter, or a slice of it.
struct ParameterSpan {
  std::int64_t offset = 0;  ///< a multiple of 64
  std::int64_t numel = 0;
  int parameter_number = 0;  ///< counted in the order of the parameters' names
  std::int64_t begin = 0;    ///< index of the first element in it
  TensorView sums{};  ///< (Optimizer::sums(), ops::norm_sum_numel) i64: of the whole parameter
};

/// A flat run of f32 parameters that this rank updates, with gradients and states element by
/// element. Padding between parameters is zero in all of them and must stay so.
struct OptimizerShard {
  TensorView parameters;
  TensorView gradients;
  std::span<const TensorView> states;  ///< in the order of Optimizer::state_names()
  TensorView working{};  ///< bf16 or f16: receives the new parameters, rounded; empty: not wanted
  std::span<const ParameterSpan> spans{};  ///< for layerwise rules
};

/// Applies an update rule to shards. An elementwise rule gives the same bits for any cut of the
/// parameters. A step of a layerwise rule has two passes: measure() on all shards, which adds to
/// the sums of each parameter, and step() after these were summed over the ranks.
class Optimizer {
 public:
  explicit Optimizer(const rules::Settings& rule) : rule_(rule) {}

  /// Names of the states, as checkpoints use them. Each has one float per parameter, zero at the
  /// start.
  [[nodiscard]] std::span<const std::string_view> state_names() const {
    return rules::state_names(rule_);
  }
  [[nodiscard]] rules::ScalarValues scalars(const rules::Step& step) const {
    return rules::scalars(rule_, step);
  }
  /// The number of sums over each parameter that it needs; 0: it is elementwise.
  [[nodiscard]] std::int64_t sums() const;
  /// The first pass of a step of a layerwise rule: changes the states only. Asynchronous on
  /// `stream`.
  void measure(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const;
  /// Asynchronous on `stream`.
  void step(const OptimizerShard& shard, const StepTensors& step, StreamView stream) const;

 private:
  rules::Settings rule_;
};

}  // namespace dstrain::optim
