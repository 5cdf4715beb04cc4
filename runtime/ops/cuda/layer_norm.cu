#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/row_parts.h"
#include "runtime/ops/cuda/row_sums.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops::gpu {
namespace {

/// Threads of a block; each has a row.
constexpr int row_threads = 128;
using RowSum = BlockSum<float, row_threads>;

/// Calls `body(part)` for the parts of the thread's row.
template <class Args, class Body>
DSTRAIN_DEVICE void for_row(const Args& args, const Body& body) {
  for_parts<Args::numel, row_threads>(args.columns, args.aligned, body);
}

template <class T>
struct Forward {
  static constexpr int numel = pack_numel<T>;
  const T* input;
  const T* weight;
  const T* bias;  ///< or null, as the next one
  float* mean;
  float* rstd;
  T* output;
  std::int64_t columns;
  float eps;
  bool statistics;  ///< are computed, else they are there
  bool aligned;     ///< as for_parts() asks
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
    for_row(args, [&](const auto& part) {
      const auto values = part.load(x);
      part.each([&](int j) { sum += to_float(values.at[j]); });
    });
  }
  const float mean = args.mean == nullptr ? 0.0F : row.add(sum) / columns;
  float squares = 0;
  for_row(args, [&](const auto& part) {
    const auto values = part.load(x);
    part.each([&](int j) {
      const float centred = to_float(values.at[j]) - mean;
      squares += centred * centred;
    });
  });
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
  for_row(args, [&](const auto& part) {
    auto values = part.load(x);
    const auto weights = part.load(args.weight);
    const auto biases = args.bias == nullptr ? Pack<T, Forward<T>::numel>{} : part.load(args.bias);
    part.each([&](int j) {
      const float scaled = (to_float(values.at[j]) - s.mean) * s.rstd * to_float(weights.at[j]);
      values.at[j] = from_float<T>(args.bias == nullptr ? scaled : scaled + to_float(biases.at[j]));
    });
    part.store(values, y);
  });
}

template <class T>
void run_forward(const LayerNormArgs& args, bool statistics, StreamView stream) {
  Forward<T> forward{.input = elements<T>(args.input),
                     .weight = elements<T>(args.weight),
                     .bias = elements<T>(args.bias),
                     .mean = floats(args.mean),
                     .rstd = floats(args.rstd),
                     .output = elements<T>(args.output),
                     .columns = columns_of(args.input),
                     .eps = args.eps,
                     .statistics = statistics,
                     .aligned = false};
  forward.aligned = forward.columns % forward.numel == 0 &&
                    are_aligned(forward.input, forward.weight, forward.bias, forward.output);
  launch("layer_norm", forward_kernel<T>,
         {.x = rows_of(args.input), .threads = row_threads, .shared_bytes = sizeof(RowSum)},
         forward, stream);
}

template <class T>
struct Backward {
  static constexpr int numel = pack_numel<T>;
  const T* input;
  const T* weight;
  const float* mean;  ///< or null
  const float* rstd;
  const T* output_gradient;
  const T* residual;  ///< or null
  T* input_gradient;
  std::int64_t columns;
  bool accumulate;
  bool aligned;  ///< as for_parts() asks
};

/// dx = base + rstd (g - mean(g) - xhat mean(g xhat)), where g = dy weight; without a mean of the
/// input there is none of g.
template <class T>
DSTRAIN_KERNEL(row_threads)
backward_kernel(DSTRAIN_ARGUMENT Backward<T> args) {
  auto& sums = shared<RowSum>();
  const std::int64_t row = block_x();
  const T* const x = args.input + row * args.columns;
  const T* const dy = args.output_gradient + row * args.columns;
  T* const dx = args.input_gradient + row * args.columns;
  const T* const residual = args.residual == nullptr ? nullptr : args.residual + row * args.columns;
  const auto columns = static_cast<float>(args.columns);
  const bool centres = args.mean != nullptr;
  const float mean = centres ? args.mean[row] : 0.0F;
  const float rstd = args.rstd[row];
  float sum_g = 0;
  float sum_gx = 0;
  for_row(args, [&](const auto& part) {
    const auto values = part.load(x);
    const auto weights = part.load(args.weight);
    const auto gradients = part.load(dy);
    part.each([&](int j) {
      const float g = to_float(gradients.at[j]) * to_float(weights.at[j]);
      sum_g += g;
      sum_gx += g * ((to_float(values.at[j]) - mean) * rstd);
    });
  });
  const float mean_g = centres ? sums.add(sum_g) / columns : 0.0F;
  const float mean_gx = sums.add(sum_gx) / columns;
  for_row(args, [&](const auto& part) {
    const Pack<T, Backward<T>::numel> none{};
    const auto values = part.load(x);
    const auto weights = part.load(args.weight);
    const auto gradients = part.load(dy);
    const auto before = args.accumulate ? part.load(dx) : none;
    const auto more = residual != nullptr ? part.load(residual) : none;
    Pack<T, Backward<T>::numel> out{};
    part.each([&](int j) {
      const float g = to_float(gradients.at[j]) * to_float(weights.at[j]);
      const float normed = (to_float(values.at[j]) - mean) * rstd;
      float value = rstd * (g - mean_g - normed * mean_gx);
      if (args.accumulate) value += to_float(before.at[j]);
      if (residual != nullptr) value += to_float(more.at[j]);
      out.at[j] = from_float<T>(value);
    });
    part.store(out, dx);
  });
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
  Backward<T> backward{.input = elements<T>(args.input),
                       .weight = elements<T>(args.weight),
                       .mean = floats(args.mean),
                       .rstd = floats(args.rstd),
                       .output_gradient = elements<T>(args.output_gradient),
                       .residual = in_place ? nullptr : elements<T>(args.residual),
                       .input_gradient = elements<T>(args.input_gradient),
                       .columns = columns_of(args.input),
                       .accumulate = in_place || args.accumulate_input,
                       .aligned = false};
  backward.aligned = backward.columns % backward.numel == 0 &&
                     are_aligned(backward.input, backward.weight, backward.output_gradient,
                                 backward.residual, backward.input_gradient);
  launch("layer_norm_backward", backward_kernel<T>,
         {.x = rows_of(args.input), .threads = row_threads, .shared_bytes = sizeof(RowSum)},
         backward, stream);
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
