#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/scale.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct Scale {
  const T* input;
  float factor;
  T* output;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    output[i] = from_float<T>(factor * to_float(input[i]));
  }
};

}  // namespace

void scale(const TensorView& input, float factor, const TensorView& output, StreamView stream) {
  with_element_type(input.dtype(), [&](auto element) {
    using T = decltype(element);
    for_elements("scale", input.numel(), Scale<T>{elements<T>(input), factor, elements<T>(output)},
                 stream);
  });
}

}  // namespace dstrain::ops::gpu
