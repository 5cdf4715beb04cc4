#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/row_sums.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops::gpu {
namespace {

/// Threads of a block; each has a row.
constexpr int row_threads = 128;
using RowSum = BlockSum<float, row_threads>;

template <class T>
struct Forward {
  const T* input;
  const T* weight;
  const T* bias;  ///< or null, as the next one
  float* mean;
  float* rstd;
  T* output;
  std::int64_t columns;
  float eps;
  bool statistics;  ///< are computed, else they are there
};

struct Statistics {
  float mean;
  float rstd;
};

template <class T>
DSTRAIN_DEVICE Statistics compute_statistics(const Forward<T>& args, const T* x) {
  auto& row = shared<RowSum>();
  const auto columns = static_cast<float>(args.columns);
  float sum = 0;
  if (args.mean != nullptr) {
    for (std::int64_t i = thread(); i < args.columns; i += row_threads) sum += to_float(x[i]);
  }
  const float mean = args.mean == nullptr ? 0.0F : row.add(sum) / columns;
  float squares = 0;
  for (std::int64_t i = thread(); i < args.columns; i += row_threads) {
    const float centred = to_float(x[i]) - mean;
    squares += centred * centred;
  }
  return {mean, 1.0F / sqrtf(row.add(squares) / columns + args.eps)};
}

template <class T>
DSTRAIN_KERNEL(row_threads)
forward_kernel(DSTRAIN_ARGUMENT Forward<T> args) {
  const std::int64_t row = block_x();
  const T* const x = args.input + row * args.columns;
  T* const y = args.output + row * args.columns;
  Statistics s{};
  if (args.statistics) {
    s = compute_statistics(args, x);
    if (thread() == 0) {
      if (args.mean != nullptr) args.mean[row] = s.mean;
      args.rstd[row] = s.rstd;
    }
  } else {
    s = {args.mean == nullptr ? 0.0F : args.mean[row], args.rstd[row]};
  }
  for (std::int64_t i = thread(); i < args.columns; i += row_threads) {
    const float scaled = (to_float(x[i]) - s.mean) * s.rstd * to_float(args.weight[i]);
    y[i] = from_float<T>(args.bias == nullptr ? scaled : scaled + to_float(args.bias[i]));
  }
}

template <class T>
void run_forward(const LayerNormArgs& args, bool statistics, StreamView stream) {
  launch("layer_norm", forward_kernel<T>,
         {.x = rows_of(args.input), .threads = row_threads, .shared_bytes = sizeof(RowSum)},
         Forward<T>{elements<T>(args.input), elements<T>(args.weight), elements<T>(args.bias),
                    floats(args.mean), floats(args.rstd), elements<T>(args.output),
                    columns_of(args.input), args.eps, statistics},
         stream);
}

template <class T>
struct Backward {
  const T* input;
  const T* weight;
  const float* mean;  ///< or null
  const float* rstd;
  const T* output_gradient;
  const T* residual;  ///< or null
  T* input_gradient;
  std::int64_t columns;
  bool accumulate;
};

/// dx = base + rstd (g - mean(g) - xhat mean(g xhat)), where g = dy weight; without a mean of the
/// input there is none of g.
template <class T>
DSTRAIN_KERNEL(row_threads)
backward_kernel(DSTRAIN_ARGUMENT Backward<T> args) {
  auto& sums = shared<RowSum>();
  const std::int64_t row = block_x();
  const std::int64_t start = row * args.columns;
  const auto columns = static_cast<float>(args.columns);
  const bool centres = args.mean != nullptr;
  const float mean = centres ? args.mean[row] : 0.0F;
  const float rstd = args.rstd[row];
  float sum_g = 0;
  float sum_gx = 0;
  for (std::int64_t i = thread(); i < args.columns; i += row_threads) {
    const float g = to_float(args.output_gradient[start + i]) * to_float(args.weight[i]);
    sum_g += g;
    sum_gx += g * ((to_float(args.input[start + i]) - mean) * rstd);
  }
  const float mean_g = centres ? sums.add(sum_g) / columns : 0.0F;
  const float mean_gx = sums.add(sum_gx) / columns;
  for (std::int64_t i = thread(); i < args.columns; i += row_threads) {
    const float g = to_float(args.output_gradient[start + i]) * to_float(args.weight[i]);
    const float normed = (to_float(args.input[start + i]) - mean) * rstd;
    float value = rstd * (g - mean_g - normed * mean_gx);
    if (args.accumulate) value += to_float(args.input_gradient[start + i]);
    if (args.residual != nullptr) value += to_float(args.residual[start + i]);
    args.input_gradient[start + i] = from_float<T>(value);
  }
}

template <class T>
void run_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  if (!args.weight_gradient.empty() || !args.bias_gradient.empty()) {
    add_up_rows<T>("layer_norm_backward",
                   {.values = elements<T>(args.output_gradient),
                    .rows = rows_of(args.input),
                    .columns = columns_of(args.input),
                    .input = elements<T>(args.input),
                    .mean = floats(args.mean),
                    .rstd = floats(args.rstd),
                    .plain = {floats(args.bias_gradient), args.accumulate_bias},
                    .weighted = {floats(args.weight_gradient), args.accumulate_weight}},
                   stream);
  }
  const bool in_place = args.residual.begins_with(args.input_gradient);
  launch(
      "layer_norm_backward", backward_kernel<T>,
      {.x = rows_of(args.input), .threads = row_threads, .shared_bytes = sizeof(RowSum)},
      Backward<T>{elements<T>(args.input), elements<T>(args.weight), floats(args.mean),
                  floats(args.rstd), elements<T>(args.output_gradient),
                  in_place ? nullptr : elements<T>(args.residual), elements<T>(args.input_gradient),
                  columns_of(args.input), in_place || args.accumulate_input},
      stream);
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& args, StreamView stream) {
  with_element_type(args.input.dtype(),
                    [&](auto element) { run_forward<decltype(element)>(args, true, stream); });
}

void layer_norm_recompute(const LayerNormArgs& args, StreamView stream) {
  with_element_type(args.input.dtype(),
                    [&](auto element) { run_forward<decltype(element)>(args, false, stream); });
}

void layer_norm_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  with_element_type(args.input.dtype(),
                    [&](auto element) { run_backward<decltype(element)>(args, stream); });
}

}  // namespace dstrain::ops::gpu
