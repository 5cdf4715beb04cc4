#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/gelu.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

constexpr float cubic = 0.044715F;
constexpr float twice_root = 1.59576912F;  // 2 sqrt(2 / pi)

/// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), without the cancellation that tanh has near -1.
inline float gate(float x) {
  constexpr float linear_term = -twice_root * log2_e;
  constexpr float cubic_term = linear_term * cubic;
  const float power = x * (linear_term + cubic_term * (x * x));
  return 1.0F / (1.0F + fast_exp2(power < 126.0F ? power : 126.0F));
}

template <class T>
DSTRAIN_SIMD_CLONES void forward_kernel(const T* input, T* output, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = to_float(input[i]);
    output[i] = from_float<T>(x * gate(x));
  }
}

template <class T>
DSTRAIN_SIMD_CLONES void backward_kernel(const T* __restrict input,
                                         T* __restrict gradient,
                                         T* __restrict output,
                                         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = to_float(input[i]);
    const float s = gate(x);
    const float slope = twice_root + 3.0F * twice_root * cubic * (x * x);
    output[i] = from_float<T>(x * s);
    gradient[i] = from_float<T>(to_float(gradient[i]) * (s + x * s * (1.0F - s) * slope));
  }
}

}  // namespace

namespace cpu {

void gelu_forward(const TensorView& input, const TensorView& output, StreamView stream) {
  cpu_stream(stream).launch([input, output] {
    with_element_type(input.dtype(), [&](auto element) {
      using T = decltype(element);
      for_chunks(input.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
        forward_kernel(elements<T>(input) + begin, elements<T>(output) + begin, end - begin);
      });
    });
  });
}

void gelu_backward(const TensorView& input,
                   const TensorView& gradient,
                   const TensorView& output,
                   StreamView stream) {
  cpu_stream(stream).launch([input, gradient, output] {
    with_element_type(input.dtype(), [&](auto element) {
      using T = decltype(element);
      for_chunks(input.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
        backward_kernel(elements<T>(input) + begin, elements<T>(gradient) + begin,
                        elements<T>(output) + begin, end - begin);
      });
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
