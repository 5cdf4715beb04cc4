#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// output = gelu(input), elementwise, by the tanh approximation that GPT-2 uses ("gelu_new"):
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Both f32 or both bf16, dense, of one size;
/// output may be the input. Asynchronous on `stream`.
void gelu_forward(const TensorView& input, const TensorView& output, StreamView stream);

/// gradient = gradient gelu'(input), in place, and output = gelu(input) once more, bit for bit, for
/// the product that follows: one exponential serves both. Dtypes as above. Asynchronous on
/// `stream`.
void gelu_backward(const TensorView& input,
                   const TensorView& gradient,
                   const TensorView& output,
                   StreamView stream);

}  // namespace dstrain::ops
