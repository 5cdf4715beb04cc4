#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::optim {

/// The decays of Adam's moments.
struct Betas {
  double beta1 = 0;
  double beta2 = 0;
  friend bool operator==(const Betas&, const Betas&) = default;
};

/// What changes from step to step.
struct StepScalars {
  std::int64_t step = 1;  ///< number of this update, from 1
  double learning_rate = 0;
  std::optional<Betas> betas{};  ///< of this step; nothing: the optimizer's own
};

/// What a rule makes of them, in an order of its own: the elements of a tensor.
using RuleScalars = std::array<float, 16>;

/// What of a step its updates read, where they run.
struct StepTensors {
  TensorView scalars;     ///< f32: RuleScalars (16), or those of each parameter group (G, 16)
  TensorView decision{};  ///< (StepDecision::numel) f64; empty: taken, with gradients as they are
  /// Those of one of the groups.
  [[nodiscard]] StepTensors of(int group) const {
    constexpr std::int64_t numel = std::tuple_size_v<RuleScalars>;
    return {scalars.rows(group, 1).reshaped({numel}), decision};
  }
};

/// A flat run of parameters that this rank updates, f32, with what belongs to it, element by
/// element. Padding between parameters is zero in all of them and must stay so.
struct OptimizerShard {
  TensorView parameters;
  TensorView gradients;
  std::span<const TensorView> states;  ///< in the order of Optimizer::state_names()
  TensorView working{};  ///< bf16: receives the new parameters, rounded; empty: not wanted
};

/// An update rule. An elementwise rule sees any cut of the parameters and gives the same bits.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Names of the states, one float per parameter each, zero at the start; the names that
  /// checkpoints use.
  [[nodiscard]] virtual std::span<const std::string_view> state_names() const = 0;
  [[nodiscard]] virtual RuleScalars scalars(const StepScalars& step) const = 0;
  /// Asynchronous on `stream`.
  virtual void step(const OptimizerShard& shard,
                    const StepTensors& step,
                    StreamView stream) const = 0;
};

}  // namespace dstrain::optim
