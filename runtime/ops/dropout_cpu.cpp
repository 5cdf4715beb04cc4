#include <algorithm>

#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Elements [begin, end) of one sequence; begin is a multiple of dropout_group.
struct Span {
  std::int64_t sequence;
  std::int64_t begin;
  std::int64_t end;
};

DSTRAIN_SIMD_CLONES
void masked_kernel(
    const float* input, const float* residual, float* output, const DropoutSite& site, Span span) {
  float multipliers[dropout_group];
  for (std::int64_t begin = span.begin; begin < span.end; begin += dropout_group) {
    dropout_multipliers(site, span.sequence, begin / dropout_group, multipliers);
    const std::int64_t count = std::min(dropout_group, span.end - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = input[begin + i] * multipliers[i];
      output[begin + i] = residual == nullptr ? value : residual[begin + i] + value;
    }
  }
}

DSTRAIN_SIMD_CLONES
void plain_kernel(const float* input, const float* residual, float* output, Span span) {
  for (std::int64_t i = span.begin; i < span.end; ++i) {
    output[i] = residual == nullptr ? input[i] : residual[i] + input[i];
  }
}

}  // namespace

void dropout(const DropoutArgs& args, StreamView stream) {
  const Shape& shape = args.input.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "input {} is not (B, T, C)", to_string(shape));
  DSTRAIN_CHECK(args.site.rate >= 0 && args.site.rate < 1, "rate {}", args.site.rate);
  DSTRAIN_CHECK(args.site.first_sample + shape[0] <= (std::int64_t{1} << 24), "sample {}",
                args.site.first_sample + shape[0]);
  require_f32(args.input, shape, "input");
  require_f32(args.output, shape, "output");
  if (!args.residual.empty()) require_f32(args.residual, shape, "residual");
  stream.launch([args, shape] {
    const std::int64_t numel = shape[1] * shape[2];
    const std::int64_t chunks = chunk_count(numel, elementwise_chunk);
    parallel_for(shape[0] * chunks, [&](std::int64_t task) {
      const std::int64_t sequence = task / chunks;
      const std::int64_t begin = task % chunks * elementwise_chunk;
      const Span span{sequence, begin, std::min(numel, begin + elementwise_chunk)};
      const float* const input = floats(args.input) + sequence * numel;
      const float* const residual =
          args.residual.empty() ? nullptr : floats(args.residual) + sequence * numel;
      float* const output = floats(args.output) + sequence * numel;
      if (args.site.active()) {
        masked_kernel(input, residual, output, args.site, span);
      } else {
        plain_kernel(input, residual, output, span);
      }
    });
  });
}

}  // namespace dstrain::ops
