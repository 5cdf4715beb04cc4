#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// What convert() does, at once, on the caller's thread and the compute threads: for kernels of the
/// CPU.
void convert_values(const HostView& source, const HostView& target);

}  // namespace dstrain::ops
