#include "runtime/ops/copy_rows.h"

#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops::gpu {

void copy_rows(const TensorView& source, const TensorView& target, StreamView view) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  if (stream.drops() || source.numel() == 0) return;
  wait_for_source(either_side(source), stream);
  const auto bytes_of = [&](std::int64_t numel) {
    return static_cast<std::size_t>(numel * size_of(source.dtype()));
  };
  DSTRAIN_CUDA_CHECK(
      cudaMemcpy2DAsync(either_side(target), bytes_of(target.row_stride()), either_side(source),
                        bytes_of(source.row_stride()), bytes_of(source.shape()[1]),
                        static_cast<std::size_t>(source.shape()[0]), cudaMemcpyDefault,
                        stream.handle()),
      "copy_rows on GPU {}", stream.ordinal());
}

}  // namespace dstrain::ops::gpu
