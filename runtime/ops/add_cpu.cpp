#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/add.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

template <class From, class To>
DSTRAIN_SIMD_CLONES void add_kernel(const From* __restrict from,
                                    To* __restrict to,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = from_float<To>(to_float(to[i]) + to_float(from[i]));
  }
}

template <class From, class To>
void run(const TensorView& values, const TensorView& sum) {
  for_chunks(sum.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    add_kernel(elements<From>(values) + begin, elements<To>(sum) + begin, end - begin);
  });
}

}  // namespace

namespace cpu {

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  cpu_stream(stream).launch([values, sum] {
    with_element_type(values.dtype(), [&](auto from) {
      with_element_type(sum.dtype(),
                        [&](auto to) { run<decltype(from), decltype(to)>(values, sum); });
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
