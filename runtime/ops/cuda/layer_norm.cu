#include <algorithm>
#include <type_traits>

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

/// Calls `body(part)` for the parts of the block's row that the thread has: one at most, a whole
/// one, where they are held in registers.
template <int threads, bool held, class Args, class Body>
DSTRAIN_DEVICE void for_row(const Args& args, const Body& body) {
  if constexpr (held) {
    const std::int64_t begin = static_cast<std::int64_t>(thread()) * Args::numel;
    if (begin < args.columns) body(WholePart<Args::numel>{begin});
  } else {
    for_parts<Args::numel, threads>(args.columns, args.aligned, body);
  }
}

/// The parts of a row that the thread has. Where they are held, all threads load at once and
/// without a branch, which would wait for what was loaded: `instead` of no row, and the last part
/// instead of none.
template <class T, bool held>
class OwnParts {
 public:
  DSTRAIN_DEVICE OwnParts(std::int64_t columns, const T* row, const T* instead) : row_(row) {
    if constexpr (held) {
      const std::int64_t begin = static_cast<std::int64_t>(thread()) * numel;
      only_ = load<numel>(row == nullptr ? instead : row, std::min(begin, columns - numel));
    }
  }
  template <class Part>
  [[nodiscard]] DSTRAIN_DEVICE Pack<T, pack_numel<T>> at(const Part& part) const {
    if constexpr (held) return only_;
    return row_ == nullptr ? Pack<T, numel>{} : part.load(row_);
  }

 private:
  static constexpr int numel = pack_numel<T>;
  const T* row_;
  Pack<T, numel> only_;
};

template <class T>
DSTRAIN_DEVICE const T* row_of(const T* tensor, std::int64_t columns) {
  return tensor == nullptr ? nullptr : tensor + block_x() * columns;
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

template <int threads, bool held, class T>
DSTRAIN_DEVICE Statistics compute_statistics(const Forward<T>& args, const OwnParts<T, held>& x) {
  auto& row = shared<BlockSum<float, threads>>();
  const auto columns = static_cast<float>(args.columns);
  float sum = 0;
  if (args.mean != nullptr) {
    for_row<threads, held>(args, [&](const auto& part) {
      const auto values = x.at(part);
      part.each([&](int j) { sum += to_float(values.at[j]); });
    });
  }
  const float mean = args.mean == nullptr ? 0.0F : row.add(sum) / columns;
  float squares = 0;
  for_row<threads, held>(args, [&](const auto& part) {
    const auto values = x.at(part);
    part.each([&](int j) {
      const float centred = to_float(values.at[j]) - mean;
      squares += centred * centred;
    });
  });
  return {mean, 1.0F / sqrtf(row.add(squares) / columns + args.eps)};
}

/// Each block has a row.
template <class T, int threads, bool held>
DSTRAIN_KERNEL(threads)
forward_kernel(DSTRAIN_ARGUMENT Forward<T> args) {
  const std::int64_t row = block_x();
  const T* const input = row_of(args.input, args.columns);
  const OwnParts<T, held> x(args.columns, input, input);
  const OwnParts<T, held> weight(args.columns, args.weight, input);
  const OwnParts<T, held> bias(args.columns, args.bias, input);
  Statistics s{};
  if (args.statistics) {
    s = compute_statistics<threads>(args, x);
    if (thread() == 0) {
      if (args.mean != nullptr) args.mean[row] = s.mean;
      args.rstd[row] = s.rstd;
    }
  } else {
    s = {args.mean == nullptr ? 0.0F : args.mean[row], args.rstd[row]};
  }
  for_row<threads, held>(args, [&](const auto& part) {
    const auto values = x.at(part);
    const auto weights = weight.at(part);
    const auto biases = bias.at(part);
    Pack<float, Forward<T>::numel> out{};
    part.each([&](int j) {
      const float scaled = (to_float(values.at[j]) - s.mean) * s.rstd * to_float(weights.at[j]);
      out.at[j] = args.bias == nullptr ? scaled : scaled + to_float(biases.at[j]);
    });
    part.store(rounded<T>(out), args.output + row * args.columns);
  });
}

/// Calls `body(threads, held)` for rows of so many columns, with constants. The threads, and so the
/// order of sums, do not depend on where memory begins.
template <class T, class Body>
void with_threads(std::int64_t columns, bool aligned, const Body& body) {
  const auto with = [&](auto threads) {
    const bool held = aligned && columns > 0 && columns <= threads() * pack_numel<T>;
    if (held) return body(threads, std::true_type());
    body(threads, std::false_type());
  };
  if (columns <= 128 * pack_numel<T>) return with(std::integral_constant<int, 128>());
  if (columns <= 256 * pack_numel<T>) return with(std::integral_constant<int, 256>());
  with(std::integral_constant<int, 512>());
}

template <int threads>
Grid grid_of(const TensorView& input) {
  return {
      .x = rows_of(input), .threads = threads, .shared_bytes = sizeof(BlockSum<float, threads>)};
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
  with_threads<T>(forward.columns, forward.aligned, [&](auto threads, auto held) {
    launch("layer_norm", forward_kernel<T, threads(), held()>, grid_of<threads()>(args.input),
           forward, stream);
  });
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
template <class T, int threads, bool held>
DSTRAIN_KERNEL(threads)
backward_kernel(DSTRAIN_ARGUMENT Backward<T> args) {
  auto& sums = shared<BlockSum<float, threads>>();
  const std::int64_t row = block_x();
  T* const dx = args.input_gradient + row * args.columns;
  const T* const input = row_of(args.input, args.columns);
  const OwnParts<T, held> x(args.columns, input, input);
  const OwnParts<T, held> dy(args.columns, row_of(args.output_gradient, args.columns), input);
  const OwnParts<T, held> weight(args.columns, args.weight, input);
  const OwnParts<T, held> residual(args.columns, row_of(args.residual, args.columns), input);
  const OwnParts<T, held> before(args.columns, args.accumulate ? dx : nullptr, input);
  const auto columns = static_cast<float>(args.columns);
  const bool centres = args.mean != nullptr;
  const float mean = centres ? args.mean[row] : 0.0F;
  const float rstd = args.rstd[row];
  float sum_g = 0;
  float sum_gx = 0;
  for_row<threads, held>(args, [&](const auto& part) {
    const auto values = x.at(part);
    const auto weights = weight.at(part);
    const auto gradients = dy.at(part);
    part.each([&](int j) {
      const float g = to_float(gradients.at[j]) * to_float(weights.at[j]);
      sum_g += g;
      sum_gx += g * ((to_float(values.at[j]) - mean) * rstd);
    });
  });
  const float mean_g = centres ? sums.add(sum_g) / columns : 0.0F;
  const float mean_gx = sums.add(sum_gx) / columns;
  for_row<threads, held>(args, [&](const auto& part) {
    const auto values = x.at(part);
    const auto weights = weight.at(part);
    const auto gradients = dy.at(part);
    const auto old = before.at(part);
    const auto more = residual.at(part);
    Pack<float, Backward<T>::numel> out{};
    part.each([&](int j) {
      const float g = to_float(gradients.at[j]) * to_float(weights.at[j]);
      const float normed = (to_float(values.at[j]) - mean) * rstd;
      float value = rstd * (g - mean_g - normed * mean_gx);
      if (args.accumulate) value += to_float(old.at[j]);
      if (args.residual != nullptr) value += to_float(more.at[j]);
      out.at[j] = value;
    });
    part.store(rounded<T>(out), dx);
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
  with_threads<T>(backward.columns, backward.aligned, [&](auto threads, auto held) {
    launch("layer_norm_backward", backward_kernel<T, threads(), held()>,
           grid_of<threads()>(args.input), backward, stream);
  });
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
