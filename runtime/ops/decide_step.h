#pragma once
#include <algorithm>

#include "runtime/device/stream.h"
#include "runtime/numeric/exact_sum.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// The decision about a step: the elements, all f64, of a tensor that updates read.
struct StepDecision {
  double loss = 0;            ///< mean over the labels, natural log
  double gradient_norm = 0;   ///< before clipping, without the loss scale
  double gradient_scale = 1;  ///< factor of every gradient: clip_scale() / loss scale
  double taken = 1;           ///< 0: the loss or the norm is not finite, and nothing is updated
  static constexpr std::int64_t numel = 4;
  [[nodiscard]] constexpr bool is_taken() const { return taken != 0; }
};

/// Returns a decision in host memory as such a tensor.
inline HostView view_of(StepDecision& decision) {
  return {&decision, DType::f64, {StepDecision::numel}};
}

/// A rank's contribution to a step's figures, as 64-bit words: an ExactSum of the squares of its
/// gradients, then the f64 sum of the losses of its labels.
inline constexpr std::int64_t step_total_numel = ExactSum::numel + 1;

struct DecideStepArgs {
  TensorView totals;      ///< (N, step_total_numel) i64: of each rank
  TensorView labels;      ///< (1) f64: number of labels that count on all ranks
  TensorView loss_scale;  ///< (1) f64: the factor of the gradients
  TensorView decision;    ///< (StepDecision::numel) f64
  double norm_max = 0;    ///< largest norm; 0: no limit

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(totals);
    visit(labels);
    visit(loss_scale);
    visit(decision);
  }
};

/// Returns the factor of gradients that keeps their norm at most `norm_max` (0: no limit): min(1,
/// norm_max / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_.
constexpr double clip_scale(double norm, double norm_max) {
  return norm_max > 0 ? std::min(1.0, norm_max / (norm + 1e-6)) : 1.0;
}

/// Computes `decision` from `totals`: adds losses in rank order, and squares without rounding.
/// Asynchronous on `stream`.
void decide_step(const DecideStepArgs& args, StreamView stream);

}  // namespace dstrain::ops
