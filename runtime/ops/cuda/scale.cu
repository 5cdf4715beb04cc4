#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/scale.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct Scale {
  static constexpr int numel = pack_numel<T>;
  const T* input;
  float factor;
  T* output;
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto value = load<n>(input, i);
#pragma unroll
    for (T& one : value.at) one = from_float<T>(factor * to_float(one));
    store(value, output, i);
  }
};

}  // namespace

void scale(const TensorView& input, float factor, const TensorView& output, StreamView stream) {
  with_element_type(input.dtype(), [&](auto element) {
    using T = decltype(element);
    const Scale<T> body{elements<T>(input), factor, elements<T>(output)};
    for_packs("scale", input.numel(), are_aligned(body.input, body.output), body, stream);
  });
}

}  // namespace dstrain::ops::gpu
