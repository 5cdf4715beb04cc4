#pragma once
#include <cstdint>
#include <span>

#include "runtime/base/label.h"
#include "runtime/device/stream.h"
#include "runtime/ops/logit_pieces.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Softmax and cross-entropy of R rows of logits.
struct CrossEntropyArgs {
  LogitPieces logits;                    ///< (R, V); see below
  std::span<const std::int32_t> labels;  ///< (R), in [0, V) or ignored_label
  TensorView losses;                     ///< (R) f32: written; 0 where the label does not count
  float label_weight = 0;                ///< scale of the gradient
  double* loss_sum = nullptr;            ///< added to, in double and in row order
  std::int64_t* label_count = nullptr;   ///< added to
};

/// Losses only; `logits` stays. Asynchronous on `stream`.
void cross_entropy_forward(const CrossEntropyArgs& args, StreamView stream);

/// Losses, and `logits` becomes the gradient (softmax - onehot) label_weight, zero in rows that do
/// not count. Asynchronous on `stream`.
void cross_entropy_backward(const CrossEntropyArgs& args, StreamView stream);

}  // namespace dstrain::ops
