#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

template <class T>
DSTRAIN_SIMD_CLONES void scale_kernel(const T* from, float factor, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<T>(factor * to_float(from[i]));
}

}  // namespace

namespace cpu {

void scale(const TensorView& input, float factor, const TensorView& output, StreamView stream) {
  cpu_stream(stream).launch([input, factor, output] {
    with_element_type(input.dtype(), [&](auto element) {
      using T = decltype(element);
      for_chunks(input.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
        scale_kernel(elements<T>(input) + begin, factor, elements<T>(output) + begin, end - begin);
      });
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
