#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// output = factor input, elementwise, multiplied in f32; both dense, of equal numel, and both f32,
/// bf16 or f16. The output may be the input. Asynchronous on `stream`.
void scale(const TensorView& input, float factor, const TensorView& output, StreamView stream);

}  // namespace dstrain::ops
