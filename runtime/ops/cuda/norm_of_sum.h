#pragma once
#include "runtime/ops/dropout.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops::gpu {

/// Computes dropout() of `join`, which drops nothing and has a residual, and layer_norm_forward()
/// of its output in one pass, with the same bits. Returns false and does nothing if rows are too
/// wide or not aligned.
bool norm_of_sum(const DropoutArgs& join, const LayerNormArgs& args, StreamView stream);

}  // namespace dstrain::ops::gpu
