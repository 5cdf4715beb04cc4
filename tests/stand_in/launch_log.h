#pragma once
#include <cstddef>

namespace dstrain::stand_in {

/// Appends to the file that DSTRAIN_STAND_IN_LAUNCHES names, if any, a line with where the kernel
/// lies in its library and how many bytes each of its blocks shares: each such pair once.
void log_launch(const void* kernel, std::size_t shared_bytes);

}  // namespace dstrain::stand_in
