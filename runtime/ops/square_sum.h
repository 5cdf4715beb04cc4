#pragma once
#include <vector>

#include "runtime/device/stream.h"
#include "runtime/numeric/exact_sum.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Adds the squares of all `values`, each f32, bf16 or f16 and dense, to `sum`, an ExactSum in
/// (ExactSum::numel) i64. Per block of 64 elements of each (its last may be short) they are added
/// in double in a fixed order, eight lanes and then a tree, where a product of two floats is exact;
/// blocks are added without rounding. So the bits depend on nothing but the blocks: as long as
/// ranges start on multiples of 64 within a parameter, not on how it is split over tensors, calls
/// or ranks. Asynchronous on `stream`.
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

/// A sum in the host's memory as such a tensor.
inline HostView view_of(ExactSum& sum) {
  return {&sum, DType::i64, {ExactSum::numel}};
}

}  // namespace dstrain::ops
