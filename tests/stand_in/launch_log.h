#pragma once
#include <cstddef>

namespace dstrain::stand_in {

/// Appends a line to the file named by DSTRAIN_STAND_IN_LAUNCHES, if set: the kernel's address in
/// its library and the shared memory per block. Each such pair is logged once.
void log_launch(const void* kernel, std::size_t shared_bytes);

}  // namespace dstrain::stand_in
