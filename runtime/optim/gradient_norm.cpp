#include "runtime/optim/gradient_norm.h"

#include <algorithm>

namespace dstrain::optim {

double clip_scale(double norm, double norm_max) {
  return norm_max > 0 ? std::min(1.0, norm_max / (norm + 1e-6)) : 1.0;
}

}  // namespace dstrain::optim
