#pragma once
#include "runtime/ops/classifier.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// A GPU's plan for a classifier: it works in chunks of rows whose logits take up to 512 MiB, so
/// that few products fill the device and memory does not grow with the batch. Rows are padded to
/// multiples of 16 bytes; if there is more than one chunk, each has whole tiles of products.
///
/// A loss uses logits of the classifier's dtype, as in PyTorch, and their gradient overwrites them.
/// Logits that the caller asks for are f32, with fewer rows at a time.
///
/// A product loads and stores 16 bytes at a time only if memory is a multiple of that, along rows
/// too; with an odd number of classes it is several times slower. Classes beyond the last multiple
/// of 64 are therefore separate products.
class ClassifierChunks {
 public:
  enum class Purpose { loss, logits };
  /// Cuts from a workspace; without memory it only measures.
  ClassifierChunks(Arena& arena, const ClassifierSizes& sizes, Purpose purpose);
  /// Rows of a chunk; the last one may have fewer.
  [[nodiscard]] std::int64_t rows() const { return logits_.shape()[0]; }
  /// Elements from one row to the next.
  [[nodiscard]] std::int64_t stride() const { return logits_.shape()[1]; }
  [[nodiscard]] const TensorView& logits() const { return logits_; }
  /// Classes of the large products; the others follow.
  [[nodiscard]] std::int64_t main_classes() const { return main_classes_; }
  /// (rows, C) f32, where the gradient of the input is summed; empty if it is summed in place.
  [[nodiscard]] const TensorView& sums() const { return sums_; }
  [[nodiscard]] const TensorView& losses() const { return losses_; }  ///< (R) f32
  /// The workspace of a product.
  [[nodiscard]] const TensorView& products() const { return products_; }

 private:
  std::int64_t main_classes_;
  TensorView logits_;
  TensorView sums_;
  TensorView losses_;
  TensorView products_;
};

}  // namespace dstrain::ops
