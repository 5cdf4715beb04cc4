#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

template <class From, class To>
struct Add {
  static constexpr int numel = pack_numel<From, To>;
  const From* values;
  To* sum;
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    const auto value = load<n>(values, i);
    auto to = load<n>(sum, i);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      to.at[j] = from_float<To>(to_float(to.at[j]) + to_float(value.at[j]));
    }
    store(to, sum, i);
  }
};

}  // namespace

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  with_element_type(values.dtype(), [&](auto from) {
    with_element_type(sum.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      const Add<From, To> body{elements<From>(values), elements<To>(sum)};
      for_packs("add", sum.numel(), are_aligned(body.values, body.sum), body, stream);
    });
  });
}

}  // namespace dstrain::ops::gpu
