#pragma once
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream_access.h"
#include "runtime/ops/cuda/gpu_elements.h"

namespace dstrain::ops::gpu {

/// Returns the memory of a view on a GPU or the host. Only for copies.
inline std::byte* either_side(const TensorView& view) {
  return device_access(view);
}

/// Copies between GPU and host memory in any direction. Asynchronous unless host memory is not
/// pinned.
void copy_bytes(const char* op, const void* from, void* to, Bytes bytes, StreamView stream);

/// Call before a copy from `from`: CUDA reads unpinned host memory at once, but earlier work of the
/// stream may still have to write it.
void wait_for_source(const void* from, cuda::CudaStream& stream);

}  // namespace dstrain::ops::gpu
