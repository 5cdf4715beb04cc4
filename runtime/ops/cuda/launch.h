#pragma once
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream_access.h"
#include "runtime/ops/cuda/gpu.h"
#include "runtime/ops/cuda/gpu_elements.h"

namespace dstrain::ops::gpu {

/// Launches `kernel` for the op of this name, unless the stream has failed or there are no blocks.
template <class Args>
void launch(
    const char* op, void (*kernel)(Args), const Grid& grid, const Args& args, StreamView view) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  if (stream.drops() || grid.x * grid.y * grid.z == 0) return;
  DSTRAIN_CUDA_CHECK(start(kernel, grid, args, stream.handle()), "{} on GPU {}", op,
                     stream.ordinal());
}

}  // namespace dstrain::ops::gpu
