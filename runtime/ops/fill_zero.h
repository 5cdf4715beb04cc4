#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Makes all elements of a dense tensor of any dtype zero. Asynchronous on `stream`.
void fill_zero(const TensorView& values, StreamView stream);

}  // namespace dstrain::ops
