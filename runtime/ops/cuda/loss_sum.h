#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops::gpu {

/// sum (1) f64 += losses[r] for each row r, in order; losses are f32. `op` names the op in errors.
void add_losses(const char* op, const TensorView& losses, const TensorView& sum, StreamView stream);

}  // namespace dstrain::ops::gpu
