#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// gradient (N) f32 = [gradient +] the sum of the rows of output_gradient (..., N) f32 or bf16,
/// both dense; rows are added in f32 and in a fixed order.
struct BiasGradientArgs {
  TensorView output_gradient;
  TensorView gradient;
  bool accumulate = false;
};

/// Asynchronous on `stream`.
void bias_gradient(const BiasGradientArgs& args, StreamView stream);

}  // namespace dstrain::ops
