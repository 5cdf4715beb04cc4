#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// target = source, of equal shape (R, C) and dtype; rows may be strided. Asynchronous on `stream`.
void copy_rows(const TensorView& source, const TensorView& target, StreamView stream);

}  // namespace dstrain::ops
