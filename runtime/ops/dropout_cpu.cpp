#include <algorithm>

#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/dropout.h"
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
    const T* input, const T* residual, T* output, const DropoutSite& site, Span span) {
  float multipliers[dropout_group];
  for (std::int64_t begin = span.begin; begin < span.end; begin += dropout_group) {
    dropout_multipliers(site, span.sequence, begin / dropout_group, multipliers);
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
void run(const DropoutArgs& args, const Shape& shape) {
  const std::int64_t numel = shape[1] * shape[2];
  const std::int64_t chunks = chunk_count(numel, elementwise_chunk);
  parallel_for(shape[0] * chunks, [&](std::int64_t task) {
    const std::int64_t sequence = task / chunks;
    const std::int64_t begin = task % chunks * elementwise_chunk;
    const Span span{sequence, begin, std::min(numel, begin + elementwise_chunk)};
    const T* const input = elements<T>(args.input) + sequence * numel;
    const T* const residual =
        args.residual.empty() ? nullptr : elements<T>(args.residual) + sequence * numel;
    T* const output = elements<T>(args.output) + sequence * numel;
    if (args.site.active()) {
      masked_kernel(input, residual, output, args.site, span);
    } else {
      plain_kernel(input, residual, output, span);
    }
  });
}

}  // namespace

void dropout(const DropoutArgs& args, StreamView stream) {
  const Shape& shape = args.input.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "input {} is not (B, T, C)", to_string(shape));
  DSTRAIN_CHECK(args.site.rate >= 0 && args.site.rate < 1, "rate {}", args.site.rate);
  DSTRAIN_CHECK(args.site.first_sample + shape[0] <= (std::int64_t{1} << 24), "sample {}",
                args.site.first_sample + shape[0]);
  const DType dtype = element_dtype(args.input, "input");
  require_tensor(args.input, dtype, shape, "input");
  require_tensor(args.output, dtype, shape, "output");
  if (!args.residual.empty()) require_tensor(args.residual, dtype, shape, "residual");
  stream.launch([args, shape, dtype] {
    with_element_type(dtype, [&](auto element) { run<decltype(element)>(args, shape); });
  });
}

}  // namespace dstrain::ops
