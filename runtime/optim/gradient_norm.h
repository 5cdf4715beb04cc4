#pragma once
#include <span>

#include "runtime/optim/exact_sum.h"

namespace dstrain::optim {

/// Adds the squares of `values` to `sum`: fp64 sums over blocks of 64 elements in a fixed order,
/// added without rounding. As long as ranges start on multiples of 64 within a parameter, the
/// result does not depend on how the parameters are split over calls or ranks. On the caller's
/// thread and the compute threads.
void add_squares(std::span<const float> values, ExactSum& sum);

/// What gradients are multiplied with so that their norm is at most `norm_max` (0: no limit):
/// min(1, norm_max / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
double clip_scale(double norm, double norm_max);

}  // namespace dstrain::optim
