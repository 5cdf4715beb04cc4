#pragma once
#include <cstdint>

#include "runtime/ops/logit_pieces.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops::cpu {

/// Softmax and cross-entropy of R rows of logits, in host memory.
struct CrossEntropyRows {
  LogitPieces logits;         ///< (R, V)
  TensorView labels;          ///< (R) i32, in [0, V) or ignored_label
  float factor = 1;           ///< of the losses and the gradient
  TensorView label_weight{};  ///< (1) f32: scale of the gradient; empty: no gradient
  TensorView losses;          ///< (R) f32
  TensorView softmax;         ///< (R, 2) f32: passed from the losses to the gradient
};

/// Writes the losses, 0 if the label does not count, and adds them to loss_sum (1) f64, in row
/// order. Throws Error{internal} for a label outside the columns. Parallel.
void cross_entropy_losses(const CrossEntropyRows& rows, const TensorView& loss_sum);

/// Computes the gradient of a piece of the logits, (R, width(piece)) f32, bf16 or f16, which may
/// overwrite the piece: factor (softmax - onehot) label_weight, zero in rows that do not count.
/// Call after the losses. Parallel.
void cross_entropy_gradient(const CrossEntropyRows& rows,
                            std::int64_t piece,
                            const TensorView& gradient);

}  // namespace dstrain::ops::cpu
