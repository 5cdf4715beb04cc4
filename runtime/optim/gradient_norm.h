#pragma once

namespace dstrain::optim {

/// What gradients are multiplied with so that their norm is at most `norm_max` (0: no limit):
/// min(1, norm_max / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
double clip_scale(double norm, double norm_max);

}  // namespace dstrain::optim
