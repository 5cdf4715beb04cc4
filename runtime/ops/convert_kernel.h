#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Does convert()'s work at once, on the caller's thread and the compute threads. For CPU kernels.
void convert_values(const HostView& source, const HostView& target);

}  // namespace dstrain::ops
