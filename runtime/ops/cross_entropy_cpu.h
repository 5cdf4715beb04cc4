#pragma once
#include <cstdint>

#include "runtime/ops/logit_pieces.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops::cpu {

/// Softmax and cross-entropy of R rows of logits, in memory of the CPU.
struct CrossEntropyRows {
  LogitPieces logits;         ///< (R, V)
  TensorView labels;          ///< (R) i32, in [0, V) or ignored_label
  float factor = 1;           ///< of losses and gradient
  TensorView label_weight{};  ///< (1) f32: scale of the gradient; empty: there is none
  TensorView losses;          ///< (R) f32
  TensorView softmax;         ///< (R, 2) f32: from the losses to the gradient
};

/// Writes the losses, 0 where the label does not count, and adds them to loss_sum (1) f64, in row
/// order. Throws Error{internal} at a label outside the columns. In parallel.
void cross_entropy_losses(const CrossEntropyRows& rows, const TensorView& loss_sum);

/// The gradient of a piece of the logits, (R, width(piece)) f32, bf16 or f16, which may be the
/// piece itself: factor (softmax - onehot) label_weight, zero in rows that do not count. Behind the
/// losses. In parallel.
void cross_entropy_gradient(const CrossEntropyRows& rows,
                            std::int64_t piece,
                            const TensorView& gradient);

}  // namespace dstrain::ops::cpu
