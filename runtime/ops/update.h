#pragma once
#include <cstdint>

#include "runtime/device/stream.h"
#include "runtime/numeric/exact_sum.h"
#include "runtime/rules/registry.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// The sums of a layerwise rule over a whole parameter: the squares of its values and of its
/// change, as digits, so that ranks can add them.
inline constexpr std::int64_t norm_sums = 2;
inline constexpr std::int64_t norm_sum_numel = std::tuple_size_v<ExactSum::Digits>;

/// A flat range of parameters and the tensors that belong to it, of equal numel, f32 except
/// `working`, and the inputs of the step. For a layerwise rule the range is within one parameter.
struct UpdateArgs {
  std::size_t rule = 0;  ///< number in rules::Rules
  TensorView parameters;
  TensorView gradients;  ///< empty if update() repeats a layerwise rule's change
  std::array<TensorView, rules::states_max> states{};  ///< in the rule's order; the rest is empty
  TensorView scalars;     ///< (rules::scalar_numel) f32: rules::scalars()
  TensorView sums{};      ///< (norm_sums, norm_sum_numel) i64: for layerwise rules
  TensorView decision{};  ///< (StepDecision::numel) f64; empty: taken, with gradients as they are
  TensorView working{};   ///< bf16 or f16: receives the new parameters, rounded; empty: not wanted

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(parameters);
    visit(gradients);
    visit(scalars);
    visit(sums);
    visit(decision);
    visit(working);
    for (TensorView& state : states) visit(state);
  }
};

/// Returns scalars in host memory as such a tensor.
inline HostView view_of(rules::ScalarValues& scalars) {
  return {&scalars, DType::f32, {rules::scalar_numel}};
}

/// Updates parameters and states by a rule's formula, with gradients times the decision's scale. If
/// the decision is not to take the step, nothing changes, except that the working copy is set to
/// that of the parameters. Root and division are correctly rounded, and nothing is fused except
/// explicitly, so the bits do not depend on the instruction set, on threads or on how a range is
/// cut. The working copy is written in the same pass and changes no other bit.
///
/// AdamW reads 16 and writes 12 bytes per element, and 2 with the working copy. A layerwise rule
/// takes two passes, between which ranks add up `sums`. measure_update() updates the states, adds
/// the squares to `sums` (as add_squares() does, for cuts at multiples of 64) and leaves the
/// parameters unchanged; update() follows. LAMB's passes read 28 and write 12 bytes per element.
/// Asynchronous on `stream`.
void update(const UpdateArgs& args, StreamView stream);
void measure_update(const UpdateArgs& args, StreamView stream);

}  // namespace dstrain::ops
