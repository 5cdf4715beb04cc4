#pragma once
#include <cuda_runtime_api.h>

namespace dstrain::stand_in {

/// Lets the stream take its time before a kernel whose arguments are of the type `arguments` (as
/// its typeid names it): DSTRAIN_STAND_IN_SLOW, as in "Fold 5", says of which types, by a part of
/// the name, and how many milliseconds.
void take_time(const char* arguments, cudaStream_t stream);

}  // namespace dstrain::stand_in
