#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// target[i] = source[i], f32, bf16 or f16, of one dtype and shape, dense. `not_finite`, (1) i32,
/// becomes 1 if an element is NaN or infinite. `target` and `not_finite` may be host memory if
/// the source is a device's. Asynchronous on `stream`.
struct CopyFiniteArgs {
  TensorView source;
  TensorView target;
  TensorView not_finite;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(source);
    visit(target);
    visit(not_finite);
  }
};
void copy_finite(const CopyFiniteArgs& args, StreamView stream);

}  // namespace dstrain::ops
