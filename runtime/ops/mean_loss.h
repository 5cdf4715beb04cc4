#pragma once
#include "runtime/base/label.h"
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// A loss per row: factor times the mean of its K terms, in f32. With targets a term is (value -
/// target)^2, as in torch.nn.MSELoss; without targets it is the value. With `label_weight` also the
/// gradient of a value: label_weight factor / K times 2 (value - target) or 1, and zero in rows
/// that do not count.
struct MeanLossArgs {
  TensorView values;          ///< (R, K) f32, bf16 or f16
  TensorView targets{};       ///< (R, K) f32, or empty
  TensorView labels;          ///< (R) i32: a row with ignored_label does not count
  float factor = 1;           ///< of this loss in a sum of several
  TensorView losses;          ///< (R) f32: written, 0 in rows that do not count
  TensorView loss_sum;        ///< (1) f64: the losses are added to it, in order
  TensorView label_weight{};  ///< (1) f32; empty: the loss alone
  TensorView gradient{};      ///< (R, K) of the dtype of values: written; may be `values`

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(values);
    visit(targets);
    visit(labels);
    visit(losses);
    visit(loss_sum);
    visit(label_weight);
    visit(gradient);
  }
};

/// Asynchronous on `stream`.
void mean_loss(const MeanLossArgs& args, StreamView stream);

}  // namespace dstrain::ops
