#include <algorithm>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/mean_loss.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// The sum of a row's terms.
template <class T>
DSTRAIN_SIMD_CLONES void sum_terms(const T* x, const float* target, std::int64_t n, float& sum) {
  if (target == nullptr) {
    sum = sum_lanes(n, [x](std::int64_t i) { return to_float(x[i]); });
    return;
  }
  sum = sum_lanes(n, [x, target](std::int64_t i) {
    const float error = to_float(x[i]) - target[i];
    return error * error;
  });
}

template <class T>
DSTRAIN_SIMD_CLONES void term_gradients(
    const T* x, const float* target, std::int64_t n, float scale, T* gradient) {
  if (target == nullptr) {
    std::fill_n(gradient, n, from_float<T>(scale));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    gradient[i] = from_float<T>((to_float(x[i]) - target[i]) * (2 * scale));
  }
}

template <class T>
void row_of_terms(const MeanLossArgs& args, std::int64_t row) {
  const std::int64_t columns = args.values.shape()[1];
  const bool wants_gradient = !args.label_weight.empty();
  T* const gradient = wants_gradient ? elements<T>(args.gradient) + row * columns : nullptr;
  float& loss = floats(args.losses)[row];
  loss = 0;
  if (elements<std::int32_t>(args.labels)[row] == ignored_label) {
    if (wants_gradient) std::fill_n(gradient, columns, T{});
    return;
  }
  const T* const x = elements<T>(args.values) + row * columns;
  const float* const target = args.targets.empty() ? nullptr : floats(args.targets) + row * columns;
  const float factor = args.factor / static_cast<float>(columns);
  sum_terms(x, target, columns, loss);
  loss *= factor;
  if (!wants_gradient) return;
  term_gradients(x, target, columns, factor * floats(args.label_weight)[0], gradient);
}

}  // namespace

namespace cpu {

void mean_loss(const MeanLossArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    const std::int64_t rows = args.values.shape()[0];
    const std::int64_t columns = std::max<std::int64_t>(args.values.shape()[1], 1);
    const std::int64_t chunk = std::max<std::int64_t>(elementwise_chunk / columns, 1);
    with_element_type(args.values.dtype(), [&](auto element) {
      for_chunks(rows, chunk, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          row_of_terms<decltype(element)>(args, row);
        }
      });
    });
    double& sum = *elements<double>(args.loss_sum);
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += static_cast<double>(floats(args.losses)[row]);
    }
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
