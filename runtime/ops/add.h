#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// sum[i] += values[i]: f32, dense and of equal numel. Asynchronous on `stream`.
void add(const TensorView& values, const TensorView& sum, StreamView stream);

}  // namespace dstrain::ops
