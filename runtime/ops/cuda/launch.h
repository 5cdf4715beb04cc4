#pragma once
#include "runtime/base/units.h"
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream_access.h"
#include "runtime/ops/cuda/gpu.h"
#include "runtime/ops/cuda/gpu_elements.h"

namespace dstrain::ops::gpu {

/// Throws Error{device} for a kernel that failed to launch.
[[noreturn]] inline void fail_start(cudaError_t error,
                                    const char* op,
                                    const Grid& grid,
                                    int ordinal) {
  constexpr std::size_t everywhere = 48 * 1024;
  if (error == cudaErrorInvalidValue && grid.shared_bytes > everywhere) {
    fail(ErrorCode::device, "{}: a block shares {}, and GPU {} has less for one", op,
         format_bytes(static_cast<Bytes>(grid.shared_bytes)), ordinal);
  }
  cuda::fail_call(error, "cudaLaunchKernelEx", fmt::format("{} on GPU {}", op, ordinal));
}

/// Launches `kernel` for the op of this name, unless the stream has failed or there are no blocks.
template <class Args>
void launch(
    const char* op, void (*kernel)(Args), const Grid& grid, const Args& args, StreamView view) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  if (stream.drops() || grid.x * grid.y * grid.z == 0) return;
  const cudaError_t error = start(kernel, grid, args, stream.handle());
  if (error != cudaSuccess) fail_start(error, op, grid, stream.ordinal());
}

}  // namespace dstrain::ops::gpu
