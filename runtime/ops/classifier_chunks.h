#pragma once
#include "runtime/ops/classifier.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// How a GPU works on a classifier: in chunks of rows, whose logits take up to 512 MiB, so that few
/// products fill the device and memory does not grow with the batch. Rows are padded to multiples
/// of 16 bytes, and chunks have whole tiles of products where there is more than one.
///
/// A loss is that of logits of the classifier's dtype, as in PyTorch, and their gradient takes
/// their place. Logits that are wanted themselves are f32, of fewer rows at a time.
///
/// A product loads and stores 16 bytes at a time only where memory is a multiple of that, along
/// rows too: it is several times slower for an odd number of classes. Those beyond the last
/// multiple of 64 are therefore products of their own.
class ClassifierChunks {
 public:
  enum class Purpose { loss, logits };
  /// Cuts from a workspace; measures, when it has none.
  ClassifierChunks(Arena& arena, const ClassifierSizes& sizes, Purpose purpose);
  /// Of a chunk; the last one may have fewer.
  [[nodiscard]] std::int64_t rows() const { return logits_.shape()[0]; }
  /// From a row to the next.
  [[nodiscard]] std::int64_t stride() const { return logits_.shape()[1]; }
  [[nodiscard]] const TensorView& logits() const { return logits_; }
  /// Classes of the large products; the others follow.
  [[nodiscard]] std::int64_t main_classes() const { return main_classes_; }
  /// (rows, C) f32: where the gradient of the input is added up; empty: where it goes.
  [[nodiscard]] const TensorView& sums() const { return sums_; }
  [[nodiscard]] const TensorView& losses() const { return losses_; }  ///< (R) f32
  /// What a product takes.
  [[nodiscard]] const TensorView& products() const { return products_; }

 private:
  std::int64_t main_classes_;
  TensorView logits_;
  TensorView sums_;
  TensorView losses_;
  TensorView products_;
};

}  // namespace dstrain::ops
