#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "runtime/base/exact_sum.h"
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
  double loss_scale = 1;         ///< what the gradients were multiplied with from the start
  std::int64_t rounding = 0;     ///< what stochastic rounding draws from
};

/// What a rule makes of them, in an order of its own: the elements of a tensor.
using RuleScalars = std::array<float, 16>;

/// `own`, a struct of floats, as the first of them.
template <class Own>
RuleScalars rule_scalars(const Own& own) {
  static_assert(std::is_trivially_copyable_v<Own> && sizeof(own) <= sizeof(RuleScalars));
  RuleScalars scalars{};
  std::memcpy(scalars.data(), &own, sizeof(own));
  return scalars;
}

/// What of a step its updates read, where they run.
struct StepTensors {
  TensorView scalars;     ///< f32: RuleScalars (16), or those of each parameter group (G, 16)
  TensorView decision{};  ///< (StepDecision::numel) f64; empty: taken, with gradients as they are
  TensorView rounding{};  ///< (1) i64: what stochastic rounding draws from
  /// Those of one of the groups.
  [[nodiscard]] StepTensors of(int group) const {
    constexpr std::int64_t numel = std::tuple_size_v<RuleScalars>;
    return {scalars.rows(group, 1).reshaped({numel}), decision, rounding};
  }
};

/// Where in a flat run one parameter lies, or what of it is there.
struct ParameterSpan {
  std::int64_t offset = 0;  ///< a multiple of 64
  std::int64_t numel = 0;
  int parameter = 0;       ///< its number among those of the model
  std::int64_t begin = 0;  ///< index of the first element in it
  TensorView sums{};       ///< (Optimizer::sums(), sum_numel) i64: of the whole parameter
};

/// Elements of such a sum: ExactSum::Digits, which ranks add up.
inline constexpr std::int64_t sum_numel = std::tuple_size_v<ExactSum::Digits>;

/// A flat run of parameters that this rank updates, f32, with what belongs to it, element by
/// element. Padding between parameters is zero in all of them and must stay so.
struct OptimizerShard {
  TensorView parameters;
  TensorView gradients;
  std::span<const TensorView> states;  ///< in the order of Optimizer::state_names()
  TensorView working{};  ///< bf16 or f16: receives the new parameters, rounded; empty: not wanted
  std::span<const ParameterSpan> spans{};  ///< for rules that take sums
};

/// An update rule. An elementwise rule sees any cut of the parameters and gives the same bits. One
/// that needs to know of whole parameters takes sums() over each: then a step has two passes, first
/// measure() for all there is, which adds to the sums, and when these are added up over the ranks
/// step().
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Names of the states, one float per parameter each, zero at the start; the names that
  /// checkpoints use.
  [[nodiscard]] virtual std::span<const std::string_view> state_names() const = 0;
  [[nodiscard]] virtual RuleScalars scalars(const StepScalars& step) const = 0;
  /// How many sums over each parameter it takes; 0: it is elementwise.
  [[nodiscard]] virtual std::int64_t sums() const { return 0; }
  /// The first pass of a step, of rules that take sums: may change the states, of what else there
  /// is nothing. Asynchronous on `stream`.
  virtual void measure(const OptimizerShard& /*shard*/,
                       const StepTensors& /*step*/,
                       StreamView /*stream*/) const {}
  /// Asynchronous on `stream`.
  virtual void step(const OptimizerShard& shard,
                    const StepTensors& step,
                    StreamView stream) const = 0;
};

}  // namespace dstrain::optim
