#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// sum[i] += values[i], added in f32: each f32, bf16 or f16, dense and of equal numel. Asynchronous
/// on `stream`.
void add(const TensorView& values, const TensorView& sum, StreamView stream);

}  // namespace dstrain::ops
