#pragma once
#include <cuda_runtime_api.h>

namespace dstrain::stand_in {

/// Delays the stream before a kernel if DSTRAIN_STAND_IN_SLOW selects it. The variable gives a part
/// of the type name of the kernel's arguments and the milliseconds, as in "Fold 5". `arguments` is
/// that name, from typeid.
void take_time(const char* arguments, cudaStream_t stream);

}  // namespace dstrain::stand_in
