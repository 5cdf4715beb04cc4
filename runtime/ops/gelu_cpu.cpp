#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/gelu.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

constexpr float cubic = 0.044715F;
constexpr float twice_root = 1.59576912F;  // 2 sqrt(2 / pi)

/// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), without the cancellation that tanh has near -1.
inline float gate(float x) {
  const float twice_u = twice_root * (x + cubic * x * x * x);
  return 1.0F / (1.0F + fast_exp(-twice_u));
}

DSTRAIN_SIMD_CLONES
void forward_kernel(const float* input, float* output, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) output[i] = input[i] * gate(input[i]);
}

DSTRAIN_SIMD_CLONES
void backward_kernel(const float* __restrict input,
                     float* __restrict gradient,
                     std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = input[i];
    const float s = gate(x);
    const float slope = twice_root * (1.0F + 3.0F * cubic * x * x);
    gradient[i] *= s + x * s * (1.0F - s) * slope;
  }
}

}  // namespace

void gelu_forward(TensorView input, TensorView output, StreamView stream) {
  require_matrix(input, rows_of(input), columns_of(input), "input");
  require_matrix(output, rows_of(input), columns_of(input), "output");
  stream.launch([input, output] {
    for_chunks(input.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
      forward_kernel(floats(input) + begin, floats(output) + begin, end - begin);
    });
  });
}

void gelu_backward(TensorView input, TensorView gradient, StreamView stream) {
  require_matrix(input, rows_of(input), columns_of(input), "input");
  require_matrix(gradient, rows_of(input), columns_of(input), "gradient");
  stream.launch([input, gradient] {
    for_chunks(input.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
      backward_kernel(floats(input) + begin, floats(gradient) + begin, end - begin);
    });
  });
}

}  // namespace dstrain::ops
