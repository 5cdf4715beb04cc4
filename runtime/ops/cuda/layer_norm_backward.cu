#include <algorithm>

#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/norm_rows.h"
#include "runtime/ops/cuda/op_state.h"
#include "runtime/ops/cuda/row_sums.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct Backward {
  static constexpr int numel = pack_numel<T>;
  const T* input;
  const T* weight;
  const float* mean;  ///< may be null
  const float* rstd;
  const T* output_gradient;
  const T* residual;  ///< may be null
  T* input_gradient;
  std::int64_t columns;
  float inverse_columns;
  bool accumulate;
  bool aligned;  ///< see for_parts()
};

/// A row's means.
struct Means {
  float of_input;  ///< 0 if there is none
  float rstd;
  float g;
  float gx;
};

/// dx = base + rstd (g - mean(g) - xhat mean(g xhat)), where g = dy weight. Norms without a mean of
/// the input omit mean(g).
template <class T>
struct Element {
  float g;
  float normed;  ///< xhat
  DSTRAIN_DEVICE Element(T input, T gradient, T weight, const Means& m)
      : g(to_float(gradient) * to_float(weight)), normed((to_float(input) - m.of_input) * m.rstd) {}
  DSTRAIN_DEVICE float input_gradient(const Means& m) const {
    return m.rstd * (g - m.g - normed * m.gx);
  }
};

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
  const bool centres = args.mean != nullptr;
  Means m{centres ? args.mean[row] : 0.0F, args.rstd[row], 0, 0};
  float sum_g = 0;
  float sum_gx = 0;
  for_row<threads, held>(args, [&](const auto& part) {
    const auto values = x.at(part);
    const auto weights = weight.at(part);
    const auto gradients = dy.at(part);
    part.each([&](int j) {
      const Element<T> e(values.at[j], gradients.at[j], weights.at[j], m);
      sum_g += e.g;
      sum_gx += e.g * e.normed;
    });
  });
  m.g = centres ? sums.add(sum_g) * args.inverse_columns : 0.0F;
  m.gx = sums.add(sum_gx) * args.inverse_columns;
  for_row<threads, held>(args, [&](const auto& part) {
    const auto values = x.at(part);
    const auto weights = weight.at(part);
    const auto gradients = dy.at(part);
    const auto old = before.at(part);
    const auto more = residual.at(part);
    Pack<float, Backward<T>::numel> out{};
    part.each([&](int j) {
      const Element<T> e(values.at[j], gradients.at[j], weights.at[j], m);
      float value = e.input_gradient(m);
      if (args.accumulate) value += to_float(old.at[j]);
      if (args.residual != nullptr) value += to_float(more.at[j]);
      out.at[j] = value;
    });
    part.store(rounded<T>(out), dx);
  });
}

/// With `threads` threads per row: the threads of a block, the blocks that a multiprocessor holds
/// at up to 128 registers per thread, and the most blocks, for an H100's 132 multiprocessors.
template <int threads>
constexpr int fold_threads = std::max(threads, 256);
template <int threads>
constexpr int fold_at_once = threads > 256 ? 1 : 2;
template <int threads>
constexpr int fold_blocks = fold_at_once<threads> * 132;

/// Computes the input gradient, and partial sums of the weight and bias gradients: each block sums
/// over its consecutive rows.
template <class T>
struct Folded {
  Backward<T> to_input;
  std::int64_t rows;
  std::int64_t block_rows;  ///< a multiple of the rows that a block processes at once
  float* partial;           ///< (blocks, sums, columns): weight sums, then bias sums
  bool of_bias;             ///< whether there are bias sums
};

template <class T, int threads>
struct FoldedShared {
  float of_warp[2][2][fold_threads<threads> / warp_threads];  ///< alternating rows, sums, warps
  /// Each thread's final column sums, if a block has several groups of threads.
  Pack<float, pack_numel<T>> sums[2][threads < fold_threads<threads> ? fold_threads<threads> : 1];
};

/// The adjacent columns that a thread owns in all its rows; may be empty.
template <class T, bool aligned>
struct OwnColumns {
  static constexpr int numel = pack_numel<T>;
  std::int64_t begin;
  int size;
  DSTRAIN_DEVICE OwnColumns(std::int64_t first, std::int64_t columns)
      : begin(aligned ? std::min(first, columns - numel) : first),
        size(static_cast<int>(
            std::min<std::int64_t>(std::max<std::int64_t>(columns - first, 0), numel))) {}
  /// Values that are loaded for an empty range are not used.
  DSTRAIN_DEVICE Pack<T, numel> load(const T* row) const {
    if constexpr (aligned) return gpu::load<numel>(row, begin);
    return PartInSingles<numel>{begin, size}.load(row);
  }
  template <class U>
  DSTRAIN_DEVICE void store(const Pack<U, numel>& pack, U* row) const {
    if (size == 0) return;
    if constexpr (aligned) return gpu::store(pack, row, begin);
    PartInSingles<numel>{begin, size}.store(pack, row);
  }
  /// Calls `body(j)` for each owned column.
  template <class Body>
  DSTRAIN_DEVICE void each(const Body& body) const {
#pragma unroll
    for (int j = 0; j < numel; ++j) {
      if (aligned ? size > 0 : j < size) body(j);
    }
  }
};

/// A thread's inputs of a row.
template <class T>
struct FoldedRow {
  Pack<T, pack_numel<T>> x;
  Pack<T, pack_numel<T>> dy;
  float mean;
  float rstd;
};

template <class T, bool aligned>
DSTRAIN_DEVICE FoldedRow<T> load_row(const Backward<T>& args,
                                     const OwnColumns<T, aligned>& columns,
                                     std::int64_t row) {
  return {columns.load(args.input + row * args.columns),
          columns.load(args.output_gradient + row * args.columns),
          args.mean == nullptr ? 0.0F : args.mean[row], args.rstd[row]};
}

/// Sums two values over the threads of a group, in the order of BlockSum.
template <int threads, class Shared>
DSTRAIN_DEVICE void add_in_group(Shared& s, int turn, float& one, float& other) {
  constexpr int warps = threads / warp_threads;
  for (int lanes = warp_threads / 2; lanes > 0; lanes /= 2) {
    one += shuffle_xor(one, lanes);
    other += shuffle_xor(other, lanes);
  }
  const int warp = thread() / warp_threads;
  if (thread() % warp_threads == 0) {
    s.of_warp[turn][0][warp] = one;
    s.of_warp[turn][1][warp] = other;
  }
  sync();  // afterwards no thread reads the other turn's values
  one = 0;
  other = 0;
  const int first = warp / warps * warps;
#pragma unroll
  for (int i = 0; i < warps; ++i) {
    one += s.of_warp[turn][0][first + i];
    other += s.of_warp[turn][1][first + i];
  }
}

/// Has the bits of backward_kernel, with `threads` threads per row. If rows are aligned, the next
/// row is loaded before this one's sums are known; otherwise that takes too many registers.
template <class T, int threads, bool aligned>
DSTRAIN_KERNEL_AT_ONCE(fold_threads<threads>, fold_at_once<threads>)
folded_kernel(DSTRAIN_ARGUMENT Folded<T> args) {
  constexpr int numel = pack_numel<T>;
  constexpr int groups = fold_threads<threads> / threads;
  auto& s = shared<FoldedShared<T, threads>>();
  const Backward<T>& to = args.to_input;
  const OwnColumns<T, aligned> own(static_cast<std::int64_t>(thread() % threads) * numel,
                                   to.columns);
  const auto weight = own.load(to.weight);
  Pack<float, numel> of_weight{};
  Pack<float, numel> of_bias{};
  const std::int64_t first = block_x() * args.block_rows;
  const std::int64_t end = std::min(first + args.block_rows, args.rows);
  const std::int64_t last = end - 1;
  std::int64_t row = first + thread() / threads;
  FoldedRow<T> next{};
  if constexpr (aligned) next = load_row(to, own, std::min(row, last));
  int turn = 0;
  for (std::int64_t at = first; at < end; at += groups, row += groups, turn ^= 1) {
    FoldedRow<T> now = next;
    if constexpr (aligned) {
      next = load_row(to, own, std::min(row + groups, last));
    } else {
      now = load_row(to, own, std::min(row, last));
    }
    T* const dx = to.input_gradient + std::min(row, last) * to.columns;
    Pack<T, numel> old{};
    Pack<T, numel> more{};
    if (to.accumulate) old = own.load(dx);
    if (to.residual != nullptr) more = own.load(to.residual + std::min(row, last) * to.columns);
    Means m{now.mean, now.rstd, 0, 0};
    float sum_g = 0;
    float sum_gx = 0;
    own.each([&](int j) {
      const Element<T> e(now.x.at[j], now.dy.at[j], weight.at[j], m);
      sum_g += e.g;
      sum_gx += e.g * e.normed;
    });
    add_in_group<threads>(s, turn, sum_g, sum_gx);
    if (row >= end) continue;
    m.g = to.mean != nullptr ? sum_g * to.inverse_columns : 0.0F;
    m.gx = sum_gx * to.inverse_columns;
    Pack<float, numel> out{};
    own.each([&](int j) {
      const Element<T> e(now.x.at[j], now.dy.at[j], weight.at[j], m);
      float value = e.input_gradient(m);
      if (to.accumulate) value += to_float(old.at[j]);
      if (to.residual != nullptr) value += to_float(more.at[j]);
      out.at[j] = value;
      const float gradient = to_float(now.dy.at[j]);
      of_weight.at[j] = fmaf(gradient, e.normed, of_weight.at[j]);
      of_bias.at[j] += gradient;
    });
    own.store(rounded<T>(out), dx);
  }
  if constexpr (groups > 1) {
    s.sums[0][thread()] = of_weight;
    s.sums[1][thread()] = of_bias;
    sync();
    if (thread() >= threads) return;
    for (int group = 1; group < groups; ++group) {
#pragma unroll
      for (int j = 0; j < numel; ++j) {
        of_weight.at[j] += s.sums[0][group * threads + thread()].at[j];
        of_bias.at[j] += s.sums[1][group * threads + thread()].at[j];
      }
    }
  }
  float* const partial = args.partial + block_x() * (args.of_bias ? 2 : 1) * to.columns;
  own.store(of_weight, partial);
  if (args.of_bias) own.store(of_bias, partial + to.columns);
}

/// The partial sums that Folded has written.
struct FoldedSums {
  const float* partial;
  std::int64_t blocks;
  std::int64_t columns;
  RowSumTarget targets[2];  ///< one per sum
};

constexpr int last_warps = 16;

/// Adds the partial sums. A block takes 32 columns of a sum; each of its 16 warps adds every 16th
/// row.
DSTRAIN_KERNEL(last_warps* warp_threads)
folded_sums_kernel(DSTRAIN_ARGUMENT FoldedSums args) {
  struct Shared {
    float of_warp[last_warps][warp_threads];
  };
  auto& s = shared<Shared>();
  const int warp = thread() / warp_threads;
  const int lane = thread() % warp_threads;
  const std::int64_t column = block_x() * warp_threads + lane;
  const std::int64_t row_numel = args.columns * blocks_y();
  const float* const from = args.partial + block_y() * args.columns + column;
  float sum = 0;
  if (column < args.columns) {
#pragma unroll 8
    for (std::int64_t row = warp; row < args.blocks; row += last_warps) {
      sum += from[row * row_numel];
    }
  }
  s.of_warp[warp][lane] = sum;
  sync();
  if (warp > 0 || column >= args.columns) return;
  sum = 0;
#pragma unroll
  for (int i = 0; i < last_warps; ++i) sum += s.of_warp[i][lane];
  const RowSumTarget& target = args.targets[block_y()];
  target.values[column] = target.accumulate ? target.values[column] + sum : sum;
}

template <class T>
Backward<T> backward_of(const LayerNormBackwardArgs& args) {
  const bool in_place = args.residual.begins_with(args.input_gradient);
  Backward<T> backward{.input = elements<T>(args.input),
                       .weight = elements<T>(args.weight),
                       .mean = floats(args.mean),
                       .rstd = floats(args.rstd),
                       .output_gradient = elements<T>(args.output_gradient),
                       .residual = in_place ? nullptr : elements<T>(args.residual),
                       .input_gradient = elements<T>(args.input_gradient),
                       .columns = columns_of(args.input),
                       .inverse_columns = 1.0F / static_cast<float>(columns_of(args.input)),
                       .accumulate = in_place || args.accumulate_input,
                       .aligned = false};
  backward.aligned = backward.columns % backward.numel == 0 &&
                     are_aligned(backward.input, backward.weight, backward.output_gradient,
                                 backward.residual, backward.input_gradient);
  return backward;
}

/// Whether folded_kernel can run: rows are short enough and there are any.
template <class T>
bool folds(const LayerNormBackwardArgs& args) {
  const std::int64_t columns = columns_of(args.input);
  return !args.weight_gradient.empty() && rows_of(args.input) > 0 && columns > 0 &&
         columns <= 512 * pack_numel<T>;
}

template <class T, int threads, bool aligned>
void fold(const Folded<T>& folded, StreamView stream) {
  launch("layer_norm_backward", folded_kernel<T, threads, aligned>,
         {.x = divide_up(folded.rows, folded.block_rows),
          .threads = fold_threads<threads>,
          .shared_bytes = sizeof(FoldedShared<T, threads>)},
         folded, stream);
}

template <class T>
void run_folded(const LayerNormBackwardArgs& args, StreamView stream) {
  const std::int64_t rows = rows_of(args.input);
  Folded<T> folded{.to_input = backward_of<T>(args),
                   .rows = rows,
                   .block_rows = 0,
                   .partial = op_state(stream).norm_partials(),
                   .of_bias = !args.bias_gradient.empty()};
  const std::int64_t columns = folded.to_input.columns;
  with_threads<T>(columns, folded.to_input.aligned, [&](auto threads, auto held) {
    static_assert(fold_blocks<threads()> * threads() * pack_numel<T> * 2 <= norm_partial_numel);
    folded.block_rows =
        round_up(divide_up(rows, fold_blocks<threads()>), fold_threads<threads()> / threads());
    fold<T, threads(), held()>(folded, stream);
  });
  launch("layer_norm_backward", folded_sums_kernel,
         {.x = divide_up(columns, warp_threads),
          .y = folded.of_bias ? 2 : 1,
          .threads = last_warps * warp_threads,
          .shared_bytes = last_warps * warp_threads * sizeof(float)},
         FoldedSums{.partial = folded.partial,
                    .blocks = divide_up(rows, folded.block_rows),
                    .columns = columns,
                    .targets = {{floats(args.weight_gradient), args.accumulate_weight},
                                {floats(args.bias_gradient), args.accumulate_bias}}},
         stream);
}

template <class T>
void run_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  if (folds<T>(args)) return run_folded<T>(args, stream);
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
  const Backward<T> backward = backward_of<T>(args);
  with_threads<T>(backward.columns, backward.aligned, [&](auto threads, auto held) {
    launch("layer_norm_backward", backward_kernel<T, threads(), held()>,
           {.x = rows_of(args.input),
            .threads = threads(),
            .shared_bytes = sizeof(BlockSum<float, threads()>)},
           backward, stream);
  });
}

}  // namespace

void layer_norm_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  with_element_type(args.input.dtype(),
                    [&](auto element) { run_backward<decltype(element)>(args, stream); });
}

}  // namespace dstrain::ops::gpu
