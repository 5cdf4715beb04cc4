#include <cmath>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/layer_norm.h"
#include "runtime/ops/row_sums.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

struct Rows {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns;
};

template <class T>
DSTRAIN_SIMD_CLONES void statistics_kernel(
    const T* input, float* mean, float* rstd, float eps, Rows rows) {
  const auto columns = static_cast<float>(rows.columns);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* const x = input + row * rows.columns;
    const bool centres = mean != nullptr;
    const float m =
        centres ? sum_lanes(rows.columns, [x](std::int64_t i) { return to_float(x[i]); }) / columns
                : 0.0F;
    const float variance = sum_lanes(rows.columns,
                                     [x, m](std::int64_t i) {
                                       const float centred = to_float(x[i]) - m;
                                       return centred * centred;
                                     }) /
                           columns;
    if (centres) mean[row] = m;
    rstd[row] = 1.0F / std::sqrt(variance + eps);
  }
}

template <class T>
// NOLINTNEXTLINE(readability-function-size): only parameters of their own are __restrict
DSTRAIN_SIMD_CLONES void apply_kernel(const T* __restrict input,
                                      const T* __restrict weight,
                                      const T* __restrict bias,
                                      const float* __restrict mean,
                                      const float* __restrict rstd,
                                      T* __restrict output,
                                      Rows rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* const x = input + row * rows.columns;
    T* const y = output + row * rows.columns;
    const float m = mean == nullptr ? 0.0F : mean[row];
    const float r = rstd[row];
    if (bias == nullptr) {
      for (std::int64_t i = 0; i < rows.columns; ++i) {
        y[i] = from_float<T>((to_float(x[i]) - m) * r * to_float(weight[i]));
      }
      continue;
    }
    for (std::int64_t i = 0; i < rows.columns; ++i) {
      y[i] = from_float<T>((to_float(x[i]) - m) * r * to_float(weight[i]) + to_float(bias[i]));
    }
  }
}

/// The gradient that the input's is added to.
template <class T>
struct Base {
  const T* residual;  ///< or null
  bool accumulate;
};

/// dx = base + rstd (g - mean(g) - xhat mean(g xhat)), where g = dy weight; without a mean of the
/// input, mean(g) is absent.
template <class T>
// NOLINTNEXTLINE(readability-function-size): the operands, as the one above has them
DSTRAIN_SIMD_CLONES void input_gradient_kernel(const T* input,
                                               const T* weight,
                                               const float* mean,
                                               const float* rstd,
                                               const T* output_gradient,
                                               T* input_gradient,
                                               Base<T> base,
                                               Rows rows) {
  const auto columns = static_cast<float>(rows.columns);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t start = row * rows.columns;
    const T* const x = input + start;
    const T* const dy = output_gradient + start;
    T* const dx = input_gradient + start;
    const bool centres = mean != nullptr;
    const float m = centres ? mean[row] : 0.0F;
    const float r = rstd[row];
    const T* const residual = base.residual == nullptr ? nullptr : base.residual + start;
    const auto g = [=](std::int64_t i) {
      return to_float(dy[i]) * to_float(weight[i]);
    };
    const auto normed = [=](std::int64_t i) {
      return (to_float(x[i]) - m) * r;
    };
    const float mean_g = centres ? sum_lanes(rows.columns, g) / columns : 0.0F;
    const float mean_gx =
        sum_lanes(rows.columns, [=](std::int64_t i) { return g(i) * normed(i); }) / columns;
    for (std::int64_t i = 0; i < rows.columns; ++i) {
      float value = r * (g(i) - mean_g - normed(i) * mean_gx);
      if (base.accumulate) value += to_float(dx[i]);
      if (residual != nullptr) value += to_float(residual[i]);
      dx[i] = from_float<T>(value);
    }
  }
}

constexpr std::int64_t rows_per_task = 16;

template <class T>
void run_apply(const LayerNormArgs& args, bool statistics) {
  const std::int64_t columns = columns_of(args.input);
  for_chunks(rows_of(args.input), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    const Rows task{begin, end, columns};
    if (statistics) {
      statistics_kernel(elements<T>(args.input), floats(args.mean), floats(args.rstd), args.eps,
                        task);
    }
    apply_kernel(elements<T>(args.input), elements<T>(args.weight), elements<T>(args.bias),
                 floats(args.mean), floats(args.rstd), elements<T>(args.output), task);
  });
}

void launch_apply(const LayerNormArgs& args, bool statistics, StreamView stream) {
  cpu_stream(stream).launch([args, statistics] {
    with_element_type(args.input.dtype(),
                      [&](auto element) { run_apply<decltype(element)>(args, statistics); });
  });
}

template <class T>
void run_backward(const LayerNormBackwardArgs& args) {
  const std::int64_t columns = columns_of(args.input);
  const std::int64_t rows = rows_of(args.input);
  const RowSums<T> sums{.values = elements<T>(args.output_gradient),
                        .rows = rows,
                        .columns = columns,
                        .input = elements<T>(args.input),
                        .mean = floats(args.mean),
                        .rstd = floats(args.rstd)};
  if (!args.weight_gradient.empty() || !args.bias_gradient.empty()) {
    add_up_rows(sums, {floats(args.bias_gradient), args.accumulate_bias},
                {floats(args.weight_gradient), args.accumulate_weight});
  }
  const bool in_place = args.residual.begins_with(args.input_gradient);
  const Base<T> base{in_place ? nullptr : elements<T>(args.residual),
                     in_place || args.accumulate_input};
  for_chunks(rows, rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    input_gradient_kernel(elements<T>(args.input), elements<T>(args.weight), floats(args.mean),
                          floats(args.rstd), elements<T>(args.output_gradient),
                          elements<T>(args.input_gradient), base, {begin, end, columns});
  });
}

}  // namespace

namespace cpu {

void layer_norm_forward(const LayerNormArgs& args, StreamView stream) {
  launch_apply(args, true, stream);
}

void layer_norm_recompute(const LayerNormArgs& args, StreamView stream) {
  launch_apply(args, false, stream);
}

void layer_norm_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    with_element_type(args.input.dtype(),
                      [&](auto element) { run_backward<decltype(element)>(args); });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
