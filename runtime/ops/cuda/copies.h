#pragma once
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream_access.h"
#include "runtime/ops/cuda/gpu_elements.h"

namespace dstrain::ops::gpu {

/// The memory of a view that may be of a GPU or of the host, for copies alone.
inline std::byte* either_side(const TensorView& view) {
  return device_access(view);
}

/// Copies between any two sides. Asynchronous, but where the host's memory is not pinned.
void copy_bytes(const char* op, const void* from, void* to, Bytes bytes, StreamView stream);

/// To be called before a copy from there: CUDA reads memory of the host that is not pinned at once,
/// and what is in it may be written by what the stream waits for.
void wait_for_source(const void* from, cuda::CudaStream& stream);

}  // namespace dstrain::ops::gpu
