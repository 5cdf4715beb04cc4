#pragma once
#include <cstdint>

#include "runtime/base/label.h"
#include "runtime/device/stream.h"
#include "runtime/ops/logit_pieces.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Softmax and cross-entropy of R rows of logits and, with `label_weight`, the gradient, which
/// overwrites them: (softmax - onehot) label_weight, zero in rows that do not count.
struct CrossEntropyArgs {
  LogitPieces logits;         ///< (R, V); with label_weight replaced by logits.gradient()
  TensorView labels;          ///< (R) i32, in [0, V) or ignored_label
  TensorView losses;          ///< (R) f32: written; 0 where the label does not count
  TensorView loss_sum;        ///< (1) f64: added to, in row order
  TensorView label_weight{};  ///< (1) f32: scale of the gradient; empty: no gradient
  TensorView softmax{};       ///< (R, 2) f32: workspace of the gradient
};

/// A label outside the vocabulary is a bug, and on the CPU an Error{internal} of the stream.
/// Asynchronous on `stream`.
void cross_entropy(const CrossEntropyArgs& args, StreamView stream);

}  // namespace dstrain::ops
