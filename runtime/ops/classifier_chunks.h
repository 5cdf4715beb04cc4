#pragma once
#include "runtime/ops/classifier.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// How a GPU works on a classifier: in chunks of rows, whose logits in f32 take up to 256 MiB, so
/// that few products fill the device and memory does not grow with the batch. Rows are padded to
/// multiples of 16 bytes, which products read faster.
class ClassifierChunks {
 public:
  /// Cuts from a workspace; measures, when it has none.
  ClassifierChunks(Arena& arena, const ClassifierSizes& sizes);
  /// Of a chunk; the last one may have fewer.
  [[nodiscard]] std::int64_t rows() const { return logits_.shape()[0]; }
  /// From a row to the next, of logits and of gradients.
  [[nodiscard]] std::int64_t stride() const { return logits_.shape()[1]; }
  [[nodiscard]] const TensorView& logits() const { return logits_; }  ///< f32
  /// Of the logits, of the classifier's dtype: in f32 in their place.
  [[nodiscard]] const TensorView& gradient() const { return gradient_; }
  [[nodiscard]] const TensorView& losses() const { return losses_; }  ///< (R) f32
  /// What a product takes.
  [[nodiscard]] const TensorView& products() const { return products_; }

 private:
  TensorView logits_;
  TensorView gradient_;
  TensorView losses_;
  TensorView products_;
};

}  // namespace dstrain::ops
