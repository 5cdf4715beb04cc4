#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

template <class From, class To>
struct Add {
  const From* values;
  To* sum;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    sum[i] = from_float<To>(to_float(sum[i]) + to_float(values[i]));
  }
};

}  // namespace

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  with_element_type(values.dtype(), [&](auto from) {
    with_element_type(sum.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      for_elements("add", sum.numel(), Add<From, To>{elements<From>(values), elements<To>(sum)},
                   stream);
    });
  });
}

}  // namespace dstrain::ops::gpu
