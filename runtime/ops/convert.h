#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// target[i] = source[i], dense and of equal numel: between f32 and bf16 or f16, which widens or
/// rounds, or with one dtype for both. Either may be host memory, for a copy to or from a device.
/// Asynchronous on `stream`.
void convert(const TensorView& source, const TensorView& target, StreamView stream);

}  // namespace dstrain::ops
