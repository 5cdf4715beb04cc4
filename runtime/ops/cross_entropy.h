#pragma once
#include <cstdint>

#include "runtime/base/label.h"
#include "runtime/device/stream.h"
#include "runtime/ops/logit_pieces.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Softmax and cross-entropy of R rows of logits.
struct CrossEntropyArgs {
  LogitPieces logits;         ///< (R, V)
  TensorView labels;          ///< (R) i32, in [0, V) or ignored_label
  TensorView losses;          ///< (R) f32: written; 0 where the label does not count
  TensorView softmax{};       ///< (R, 2) f32: written for the gradient, unless empty
  TensorView label_weight{};  ///< (1) f32: scale of the gradient; read with `softmax`
  TensorView loss_sum;        ///< (1) f64: added to, in row order
};

/// Losses, and what their gradient needs. A label outside the vocabulary is a bug, and on the CPU
/// an Error{internal} of the stream. Asynchronous on `stream`.
void cross_entropy_forward(const CrossEntropyArgs& args, StreamView stream);

/// The gradient of one piece of the logits.
struct CrossEntropyGradientArgs {
  TensorView logits;              ///< (R, W) f32
  TensorView gradient;            ///< (R, W) f32 or bf16: written; may be the logits
  TensorView labels;              ///< (R) i32, as forward had them
  std::int64_t first_column = 0;  ///< of the piece, among all V
  TensorView softmax;             ///< (R, 2) f32, as forward has left it
  TensorView label_weight;        ///< (1) f32, as forward had it
};

/// (softmax - onehot) label_weight, zero in rows that do not count. Asynchronous on `stream`.
void cross_entropy_backward(const CrossEntropyGradientArgs& args, StreamView stream);

}  // namespace dstrain::ops
