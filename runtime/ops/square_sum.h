#pragma once
#include <vector>

#include "runtime/device/stream.h"
#include "runtime/numeric/exact_sum.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Adds the squares of all `values`, each f32, bf16 or f16 and dense, to `sum`, an ExactSum in
/// (ExactSum::numel) i64. The squares of each block of 64 elements (the last of a tensor may be
/// short) are summed in double in a fixed order, eight lanes and then a tree; products of two
/// floats are exact there. Blocks are added without rounding. So the bits depend only on the
/// blocks, not on how a parameter is split over tensors, calls or ranks, as long as ranges start on
/// multiples of 64. Asynchronous on `stream`.
struct AddSquaresArgs {
  std::vector<TensorView> values;
  TensorView sum;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    for (TensorView& one : values) visit(one);
    visit(sum);
  }
};
void add_squares(const AddSquaresArgs& args, StreamView stream);

/// Returns a sum in host memory as such a tensor.
inline HostView view_of(ExactSum& sum) {
  return {&sum, DType::i64, {ExactSum::numel}};
}

}  // namespace dstrain::ops
