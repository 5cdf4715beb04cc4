#include <algorithm>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/dropout_mask.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Elements [begin, end) of one sequence; begin is a multiple of dropout_group.
struct Span {
  std::int64_t sequence;
  std::int64_t begin;
  std::int64_t end;
};

template <class T>
DSTRAIN_SIMD_CLONES void masked_kernel(
    const T* input, const T* residual, T* output, const DropoutMask& mask, Span span) {
  float multipliers[dropout_group];
  for (std::int64_t begin = span.begin; begin < span.end; begin += dropout_group) {
    dropout_multipliers(mask, span.sequence, begin / dropout_group, multipliers);
    const std::int64_t count = std::min(dropout_group, span.end - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = to_float(input[begin + i]) * multipliers[i];
      output[begin + i] =
          from_float<T>(residual == nullptr ? value : to_float(residual[begin + i]) + value);
    }
  }
}

template <class T>
DSTRAIN_SIMD_CLONES void plain_kernel(const T* input, const T* residual, T* output, Span span) {
  for (std::int64_t i = span.begin; i < span.end; ++i) {
    const float value = to_float(input[i]);
    output[i] = from_float<T>(residual == nullptr ? value : to_float(residual[i]) + value);
  }
}

template <class T>
void run(const DropoutArgs& args) {
  const Shape& shape = args.input.shape();
  const std::int64_t numel = shape[1] * shape[2];
  const std::int64_t chunks = chunk_count(numel, elementwise_chunk);
  const DropoutMask mask(args.site);
  parallel_for(shape[0] * chunks, [&](std::int64_t task) {
    const std::int64_t sequence = task / chunks;
    const std::int64_t begin = task % chunks * elementwise_chunk;
    const Span span{sequence, begin, std::min(numel, begin + elementwise_chunk)};
    const T* const input = elements<T>(args.input) + sequence * numel;
    const T* const residual =
        args.residual.empty() ? nullptr : elements<T>(args.residual) + sequence * numel;
    T* const output = elements<T>(args.output) + sequence * numel;
    if (mask.active()) {
      masked_kernel(input, residual, output, mask, span);
    } else {
      plain_kernel(input, residual, output, span);
    }
  });
}

}  // namespace

namespace cpu {

void dropout(const DropoutArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    with_element_type(args.input.dtype(), [&](auto element) { run<decltype(element)>(args); });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
