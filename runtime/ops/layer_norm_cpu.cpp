#include <cmath>

#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
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

DSTRAIN_SIMD_CLONES
void statistics_kernel(const float* input, float* mean, float* rstd, float eps, Rows rows) {
  const auto columns = static_cast<float>(rows.columns);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const x = input + row * rows.columns;
    const float m = sum_lanes(rows.columns, [x](std::int64_t i) { return x[i]; }) / columns;
    const float variance =
        sum_lanes(rows.columns, [x, m](std::int64_t i) { return (x[i] - m) * (x[i] - m); }) /
        columns;
    mean[row] = m;
    rstd[row] = 1.0F / std::sqrt(variance + eps);
  }
}

DSTRAIN_SIMD_CLONES
void apply_kernel(const float* __restrict input,
                  const float* __restrict weight,
                  const float* __restrict bias,
                  const float* __restrict mean,
                  const float* __restrict rstd,
                  float* __restrict output,
                  Rows rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const x = input + row * rows.columns;
    float* const y = output + row * rows.columns;
    const float m = mean[row];
    const float r = rstd[row];
    for (std::int64_t i = 0; i < rows.columns; ++i) y[i] = (x[i] - m) * r * weight[i] + bias[i];
  }
}

/// What the input's gradient is added to.
struct Base {
  const float* residual;  ///< or null
  bool accumulate;
};

/// dx = base + rstd (g - mean(g) - xhat mean(g xhat)), where g = dy weight.
DSTRAIN_SIMD_CLONES
void input_gradient_kernel(const float* input,
                           const float* weight,
                           const float* mean,
                           const float* rstd,
                           const float* output_gradient,
                           float* input_gradient,
                           Base base,
                           Rows rows) {
  const auto columns = static_cast<float>(rows.columns);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t start = row * rows.columns;
    const float* const x = input + start;
    const float* const dy = output_gradient + start;
    float* const dx = input_gradient + start;
    const float m = mean[row];
    const float r = rstd[row];
    const float mean_g =
        sum_lanes(rows.columns, [=](std::int64_t i) { return dy[i] * weight[i]; }) / columns;
    const float mean_gx =
        sum_lanes(rows.columns,
                  [=](std::int64_t i) { return dy[i] * weight[i] * ((x[i] - m) * r); }) /
        columns;
    const auto gradient = [=](std::int64_t i) {
      return r * (dy[i] * weight[i] - mean_g - (x[i] - m) * r * mean_gx);
    };
    if (base.accumulate) {
      for (std::int64_t i = 0; i < rows.columns; ++i) dx[i] += gradient(i);
    } else {
      for (std::int64_t i = 0; i < rows.columns; ++i) dx[i] = gradient(i);
    }
    if (base.residual == nullptr) continue;
    const float* const residual = base.residual + start;
    for (std::int64_t i = 0; i < rows.columns; ++i) dx[i] += residual[i];
  }
}

constexpr std::int64_t rows_per_task = 16;

void launch_apply(const LayerNormArgs& args, bool statistics, StreamView stream) {
  const std::int64_t columns = columns_of(args.input);
  const std::int64_t rows = rows_of(args.input);
  require_matrix(args.input, rows, columns, "input");
  require_matrix(args.output, rows, columns, "output");
  require_f32(args.weight, {columns}, "weight");
  require_f32(args.bias, {columns}, "bias");
  require_f32(args.mean, {rows}, "mean");
  require_f32(args.rstd, {rows}, "rstd");
  stream.launch([args, statistics, rows, columns] {
    for_chunks(rows, rows_per_task, [&](std::int64_t begin, std::int64_t end) {
      const Rows task{begin, end, columns};
      if (statistics) {
        statistics_kernel(floats(args.input), floats(args.mean), floats(args.rstd), args.eps, task);
      }
      apply_kernel(floats(args.input), floats(args.weight), floats(args.bias), floats(args.mean),
                   floats(args.rstd), floats(args.output), task);
    });
  });
}

void check_backward(const LayerNormBackwardArgs& args, std::int64_t rows, std::int64_t columns) {
  require_matrix(args.input, rows, columns, "input");
  require_f32(args.weight, {columns}, "weight");
  require_f32(args.mean, {rows}, "mean");
  require_f32(args.rstd, {rows}, "rstd");
  require_matrix(args.output_gradient, rows, columns, "output_gradient");
  if (!args.residual.empty()) require_matrix(args.residual, rows, columns, "residual");
  require_matrix(args.input_gradient, rows, columns, "input_gradient");
  require_f32(args.weight_gradient, {columns}, "weight_gradient");
  require_f32(args.bias_gradient, {columns}, "bias_gradient");
  DSTRAIN_CHECK(args.residual.data() != args.input_gradient.data() || !args.accumulate_input,
                "the residual would count twice");
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& args, StreamView stream) {
  launch_apply(args, true, stream);
}

void layer_norm_recompute(const LayerNormArgs& args, StreamView stream) {
  launch_apply(args, false, stream);
}

void layer_norm_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  const std::int64_t columns = columns_of(args.input);
  const std::int64_t rows = rows_of(args.input);
  check_backward(args, rows, columns);
  stream.launch([args, rows, columns] {
    const RowSums sums{.values = floats(args.output_gradient),
                       .rows = rows,
                       .columns = columns,
                       .input = floats(args.input),
                       .mean = floats(args.mean),
                       .rstd = floats(args.rstd)};
    add_up_rows(sums, {floats(args.bias_gradient), args.accumulate_bias},
                {floats(args.weight_gradient), args.accumulate_weight});
    const bool in_place = args.residual.data() == args.input_gradient.data();
    const Base base{in_place ? nullptr : floats(args.residual), in_place || args.accumulate_input};
    for_chunks(rows, rows_per_task, [&](std::int64_t begin, std::int64_t end) {
      input_gradient_kernel(floats(args.input), floats(args.weight), floats(args.mean),
                            floats(args.rstd), floats(args.output_gradient),
                            floats(args.input_gradient), base, {begin, end, columns});
    });
  });
}

}  // namespace dstrain::ops
