#include <cstring>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

template <class T>
DSTRAIN_SIMD_CLONES void widen(const T* __restrict source,
                               std::int64_t count,
                               float* __restrict target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = to_float(source[i]);
}

template <class T>
DSTRAIN_SIMD_CLONES void round(const float* __restrict source,
                               std::int64_t count,
                               T* __restrict target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = from_float<T>(source[i]);
}

}  // namespace

void convert_values(const HostView& source, const HostView& target) {
  if (source.dtype() == target.dtype()) {
    const Bytes size = size_of(source.dtype());
    for_chunks(source.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target.data() + begin * size, source.data() + begin * size,
                  static_cast<std::size_t>((end - begin) * size));
    });
    return;
  }
  const bool widens = target.dtype() == DType::f32;
  with_half_type((widens ? source : target).dtype(), [&](auto half) {
    using Half = decltype(half);
    for_chunks(source.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
      if (widens) {
        widen(elements<Half>(source) + begin, end - begin, elements<float>(target) + begin);
      } else {
        round(elements<float>(source) + begin, end - begin, elements<Half>(target) + begin);
      }
    });
  });
}

namespace cpu {

void convert(const TensorView& source, const TensorView& target, StreamView stream) {
  cpu_stream(stream).launch(
      [from = host_access(source), to = host_access(target)] { convert_values(from, to); });
}

}  // namespace cpu
}  // namespace dstrain::ops
