#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// target[i] = source[i], dense and of equal numel, each f32 or bf16: widens, rounds or copies. On
/// the caller's thread and the compute threads.
void convert(const TensorView& source, const TensorView& target);

}  // namespace dstrain::ops
