#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/norm_of_sum.h"
#include "runtime/ops/cuda/norm_rows.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct Forward {
  static constexpr int numel = pack_numel<T>;
  const T* input;
  const T* weight;
  const T* bias;  ///< may be null, like the next
  float* mean;
  float* rstd;
  T* output;
  std::int64_t columns;
  float eps;
  bool statistics;  ///< whether to compute mean and rstd; otherwise they are inputs
  bool aligned;     ///< see for_parts()
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

/// Normalizes the block's row.
template <int threads, bool held, class T>
DSTRAIN_DEVICE void norm_row(const Forward<T>& args,
                             const OwnParts<T, held>& x,
                             const OwnParts<T, held>& weight,
                             const OwnParts<T, held>& bias) {
  const std::int64_t row = block_x();
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

/// One block per row.
template <class T, int threads, bool held>
DSTRAIN_KERNEL(threads)
forward_kernel(DSTRAIN_ARGUMENT Forward<T> args) {
  const T* const input = row_of(args.input, args.columns);
  const OwnParts<T, held> x(args.columns, input, input);
  const OwnParts<T, held> weight(args.columns, args.weight, input);
  const OwnParts<T, held> bias(args.columns, args.bias, input);
  norm_row<threads, held>(args, x, weight, bias);
}

/// For a norm of a sum, which is also written.
template <class T>
struct SumForward {
  Forward<T> norm;
  const T* branch;
  const T* residual;
  T* sum;  ///< norm.input; may alias one of the two
};

/// forward_kernel() for SumForward, with rows in registers.
template <class T, int threads>
DSTRAIN_KERNEL(threads)
sum_forward_kernel(DSTRAIN_ARGUMENT SumForward<T> args) {
  constexpr int numel = pack_numel<T>;
  const std::int64_t columns = args.norm.columns;
  const WholePart<numel> any{};
  const OwnParts<T, true> branch(columns, row_of(args.branch, columns), args.norm.weight);
  const OwnParts<T, true> residual(columns, row_of(args.residual, columns), args.norm.weight);
  const OwnParts<T, true> weight(columns, args.norm.weight, args.norm.weight);
  const OwnParts<T, true> bias(columns, args.norm.bias, args.norm.weight);
  const auto before = residual.at(any);
  auto x = branch.at(any);
#pragma unroll
  for (int j = 0; j < numel; ++j) {
    x.at[j] = from_float<T>(to_float(before.at[j]) + to_float(x.at[j]));
  }
  for_row<threads, true>(args.norm,
                         [&](const auto& part) { part.store(x, args.sum + block_x() * columns); });
  norm_row<threads, true>(args.norm, OwnParts<T, true>(x), weight, bias);
}

template <class T>
Forward<T> forward_of(const LayerNormArgs& args, bool statistics) {
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
  return forward;
}

template <int threads>
Grid grid_of(const TensorView& input) {
  return {
      .x = rows_of(input), .threads = threads, .shared_bytes = sizeof(BlockSum<float, threads>)};
}

template <class T>
void run_forward(const LayerNormArgs& args, bool statistics, StreamView stream) {
  const Forward<T> forward = forward_of<T>(args, statistics);
  with_threads<T>(forward.columns, forward.aligned, [&](auto threads, auto held) {
    launch("layer_norm", forward_kernel<T, threads(), held()>, grid_of<threads()>(args.input),
           forward, stream);
  });
}

/// Returns false and does nothing if rows do not fit into registers.
template <class T>
bool run_sum_forward(const DropoutArgs& join, const LayerNormArgs& args, StreamView stream) {
  const SumForward<T> forward{forward_of<T>(args, true), elements<T>(join.input),
                              elements<T>(join.residual), elements<T>(join.output)};
  const bool aligned =
      forward.norm.aligned && are_aligned(forward.branch, forward.residual, forward.sum);
  bool done = false;
  with_threads<T>(forward.norm.columns, aligned, [&](auto threads, auto held) {
    if constexpr (held()) {
      launch("residual_norm", sum_forward_kernel<T, threads()>, grid_of<threads()>(args.input),
             forward, stream);
      done = true;
    }
  });
  return done;
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

bool norm_of_sum(const DropoutArgs& join, const LayerNormArgs& args, StreamView stream) {
  bool done = false;
  with_element_type(args.input.dtype(), [&](auto element) {
    done = run_sum_forward<decltype(element)>(join, args, stream);
  });
  return done;
}

}  // namespace dstrain::ops::gpu
