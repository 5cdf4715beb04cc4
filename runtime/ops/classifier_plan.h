#pragma once
#include "runtime/ops/classifier.h"
#include "runtime/ops/logit_pieces.h"
#include "runtime/ops/matmul.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// How the CPU works on a classifier. The classes are cut into pieces: the packed part of the
/// weight that a product reads stays small, and the gradient of a piece is in cache when the
/// products read it.
class ClassifierPlan {
 public:
  /// Cuts from a workspace; measures, when it has none.
  ClassifierPlan(Arena& arena, const ClassifierSizes& sizes);
  [[nodiscard]] const LogitPieces& logits() const { return logits_; }
  /// (R, width(piece)) of `dtype`: in f32 in the place of the logits, in halves in that of the
  /// gradient of the piece before.
  [[nodiscard]] TensorView gradient(std::int64_t piece) const;
  /// (R, C) f32: the sum over the pieces.
  [[nodiscard]] const TensorView& input_gradient() const { return input_gradient_; }
  [[nodiscard]] const TensorView& losses() const { return losses_; }    ///< (R) f32
  [[nodiscard]] const TensorView& softmax() const { return softmax_; }  ///< (R, 2) f32

  /// logits().piece(piece) = input (R, C) times a part of weight (V, C).
  [[nodiscard]] MatmulArgs logits_product(const TensorView& input,
                                          const TensorView& weight,
                                          std::int64_t piece) const;
  /// A part of sum (V, C) f32 = gradient(piece)' input, or added to it.
  [[nodiscard]] MatmulArgs weight_product(const TensorView& input,
                                          const TensorView& sum,
                                          bool accumulate,
                                          std::int64_t piece) const;
  /// input_gradient() = gradient(0) weight, then added to it.
  [[nodiscard]] MatmulArgs input_product(const TensorView& weight, std::int64_t piece) const;

 private:
  [[nodiscard]] TensorView rows_of_piece(const TensorView& matrix, std::int64_t piece) const;
  [[nodiscard]] Bytes products_workspace(const ClassifierSizes& sizes) const;

  LogitPieces logits_;
  TensorView rounded_;  ///< (R, width(0)) of `dtype`; none in f32
  TensorView input_gradient_;
  TensorView losses_;
  TensorView softmax_;
  TensorView products_;
};

}  // namespace dstrain::ops
