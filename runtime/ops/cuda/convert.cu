#include "runtime/ops/convert.h"
#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/op_state.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

template <class From, class To>
struct Convert {
  static constexpr int numel = pack_numel<From, To>;
  const From* source;
  To* target;
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    store(converted<To>(load<n>(source, i)), target, i);
  }
};

/// Elements to convert; both addresses are GPU memory.
struct Range {
  const std::byte* source;
  DType from;
  std::byte* target;
  DType to;
  std::int64_t numel;
};

void convert_range(const Range& range, StreamView stream) {
  with_element_type(range.from, [&](auto from) {
    with_element_type(range.to, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const Convert<From, To> body{reinterpret_cast<const From*>(range.source),
                                   reinterpret_cast<To*>(range.target)};
      for_packs("convert", range.numel, are_aligned(range.source, range.target), body, stream);
    });
  });
}

bool of_host(const TensorView& view) {
  return view.device().kind == DeviceKind::cpu;
}

/// One side is host memory: its dtype passes through a staging buffer on the GPU.
void convert_staged(const TensorView& source, const TensorView& target, StreamView stream) {
  std::byte* const staging = op_state(stream).staging();
  const Bytes staged_size = size_of(of_host(source) ? source.dtype() : target.dtype());
  const std::int64_t most = OpState::staging_bytes() / staged_size;
  for (std::int64_t begin = 0; begin < source.numel(); begin += most) {
    const std::int64_t numel = std::min(most, source.numel() - begin);
    const std::byte* const from = either_side(source) + begin * size_of(source.dtype());
    std::byte* const to = either_side(target) + begin * size_of(target.dtype());
    if (of_host(source)) {
      copy_bytes("convert", from, staging, numel * staged_size, stream);
      convert_range({staging, source.dtype(), to, target.dtype(), numel}, stream);
    } else {
      convert_range({from, source.dtype(), staging, target.dtype(), numel}, stream);
      copy_bytes("convert", staging, to, numel * staged_size, stream);
    }
  }
}

}  // namespace

void wait_for_source(const void* from, cuda::CudaStream& stream) {
  cudaPointerAttributes attributes{};
  DSTRAIN_CUDA_CHECK(cudaPointerGetAttributes(&attributes, from), "GPU {}", stream.ordinal());
  if (attributes.type == cudaMemoryTypeUnregistered) stream.wait_until_idle();
}

void copy_bytes(const char* op, const void* from, void* to, Bytes bytes, StreamView view) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  if (stream.drops() || bytes == 0) return;
  wait_for_source(from, stream);
  DSTRAIN_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault,
                                     stream.handle()),
                     "{}: {} bytes on GPU {}", op, bytes, stream.ordinal());
}

void convert(const TensorView& source, const TensorView& target, StreamView stream) {
  if (source.dtype() == target.dtype()) {
    copy_bytes("convert", either_side(source), either_side(target), source.bytes(), stream);
  } else if (of_host(source) || of_host(target)) {
    convert_staged(source, target, stream);
  } else {
    convert_range(
        {either_side(source), source.dtype(), either_side(target), target.dtype(), source.numel()},
        stream);
  }
}

}  // namespace dstrain::ops::gpu
