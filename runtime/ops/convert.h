#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// target[i] = source[i], dense and of equal numel: f32 and bf16 or f16, which widens or rounds, or
/// both of any one dtype. Either may be of the host: a copy to a device, or from it. Asynchronous
/// on `stream`.
void convert(const TensorView& source, const TensorView& target, StreamView stream);

}  // namespace dstrain::ops
