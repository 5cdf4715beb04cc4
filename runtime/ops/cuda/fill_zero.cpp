#include "runtime/ops/fill_zero.h"

#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops::gpu {

void fill_zero(const TensorView& values, StreamView view) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  if (stream.drops() || values.numel() == 0) return;
  DSTRAIN_CUDA_CHECK(cudaMemsetAsync(elements<std::byte>(values), 0,
                                     static_cast<std::size_t>(values.bytes()), stream.handle()),
                     "fill_zero on GPU {}", stream.ordinal());
}

}  // namespace dstrain::ops::gpu
