#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Zeroes all elements of a dense tensor of any dtype. Asynchronous on `stream`.
void fill_zero(const TensorView& values, StreamView stream);

}  // namespace dstrain::ops
