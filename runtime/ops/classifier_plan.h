#pragma once
#include "runtime/ops/classifier.h"
#include "runtime/ops/logit_pieces.h"
#include "runtime/ops/matmul.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// The CPU's plan for a classifier. The classes are cut into pieces, so that the packed part of the
/// weight stays small and the products read a piece's gradient from cache.
class ClassifierPlan {
 public:
  /// Cuts from a workspace; without memory it only measures.
  ClassifierPlan(Arena& arena, const ClassifierSizes& sizes);
  [[nodiscard]] const LogitPieces& logits() const { return logits_; }
  /// (R, width(piece)) of `dtype`: in f32 it overwrites the logits; in 16 bits, the gradient of the
  /// previous piece.
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
  /// input_gradient() = gradient(0) weight; later pieces add to it.
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
