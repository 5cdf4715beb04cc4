#include <algorithm>
#include <limits>

#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/op_state.h"
#include "runtime/ops/cuda/row_parts.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/fill_zero.h"

namespace dstrain::ops::gpu {
namespace {

/// A token outside the table, or a position before the first, makes NaNs, which end the step.
template <class T>
struct Forward {
  static constexpr int numel = pack_numel<T>;
  const std::int32_t* tokens;
  const std::int32_t* first_position;  ///< may be null, like the next
  const std::int32_t* past;
  const T* token_table;
  const T* position_table;  ///< may be null
  T* output;
  std::int64_t vocabulary;
  std::int64_t positions;  ///< of the table; without one it does not matter
  std::int64_t length;     ///< tokens per sequence
  std::int64_t columns;
  [[nodiscard]] bool aligned() const {
    return columns % numel == 0 && are_aligned(token_table, position_table, output);
  }

  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const std::int64_t column = i % columns;
    const std::int64_t token = tokens[row];
    const std::int64_t first = first_position == nullptr ? 0 : first_position[row];
    const std::int64_t before = past == nullptr ? 0 : past[row / length];
    const std::int64_t position = before + row % length - first;
    const bool outside = position < 0 || (position_table != nullptr && position >= positions);
    Pack<T, n> values;
    if (token < 0 || token >= vocabulary || first < 0 || outside) {
#pragma unroll
      for (T& value : values.at) value = from_float<T>(std::numeric_limits<float>::quiet_NaN());
      return store(values, output, i);
    }
    values = load<n>(token_table, token * columns + column);
    if (position_table != nullptr) {
      const auto of_position = load<n>(position_table, position * columns + column);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        values.at[j] = from_float<T>(to_float(values.at[j]) + to_float(of_position.at[j]));
      }
    }
    store(values, output, i);
  }
};

/// For positions that count from the first token of each sequence.
template <class T>
struct BackwardPositions {
  static constexpr int numel = pack_numel<T>;
  const T* output_gradient;
  float* gradient;
  std::int64_t sequences;
  std::int64_t sequence_numel;
  [[nodiscard]] bool aligned() const {
    return sequence_numel % numel == 0 && are_aligned(output_gradient, gradient);
  }

  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto sum = load<n>(static_cast<const float*>(gradient), i);
#pragma unroll 2
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
      const auto values = load<n>(output_gradient, sequence * sequence_numel + i);
#pragma unroll
      for (int j = 0; j < n; ++j) sum.at[j] += to_float(values.at[j]);
    }
    store(sum, gradient, i);
  }
};

/// For positions that restart within sequences.
template <class T>
struct BackwardPositionsOfDocuments {
  const std::int32_t* first_position;
  const T* output_gradient;
  float* gradient;
  std::int64_t sequences;
  std::int64_t length;
  std::int64_t columns;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    float sum = gradient[i];
    const std::int64_t position = i / columns;
    const std::int64_t column = i % columns;
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
      const std::int64_t begin = sequence * length;
      for (std::int64_t row = begin + position; row < begin + length; ++row) {
        if (row - begin - first_position[row] != position) continue;
        sum += to_float(output_gradient[row * columns + column]);
      }
    }
    gradient[i] = sum;
  }
};

struct SortRows {
  const std::int32_t* tokens;
  std::int64_t rows;
  DeviceWords* words;
};

constexpr int sort_threads = 256;

/// Stable sort of rows by token. One thread per row and slab counts the slab's rows that sort
/// before its own; the last block to finish for its rows adds the counts.
DSTRAIN_KERNEL(sort_threads)
sort_kernel(DSTRAIN_ARGUMENT SortRows args) {
  struct Shared {
    std::int32_t tokens[sorted_slab_rows];
  };
  auto& s = shared<Shared>();
  DeviceWords& words = *args.words;
  const std::int64_t row = block_x() * sort_threads + thread();
  const std::int64_t begin = block_y() * sorted_slab_rows;
  const auto count = static_cast<int>(std::min(args.rows - begin, std::int64_t{sorted_slab_rows}));
  const std::int32_t own = row < args.rows ? args.tokens[row] : 0;
  for (int i = thread(); i < count; i += sort_threads) s.tokens[i] = args.tokens[begin + i];
  sync();
  const auto earlier =
      static_cast<int>(std::max<std::int64_t>(std::min<std::int64_t>(row - begin, count), 0));
  std::int32_t before = 0;
  for (int i = 0; i < earlier; ++i) before += s.tokens[i] <= own ? 1 : 0;
  for (int i = earlier; i < count; ++i) before += s.tokens[i] < own ? 1 : 0;
  if (row < args.rows) words.smaller[block_y()][row] = before;
  const std::int64_t slabs = divide_up(args.rows, sorted_slab_rows);
  if (!is_last_block(words.arrivals[block_x()], static_cast<std::uint32_t>(slabs))) return;
  if (row >= args.rows) return;
  std::int64_t place = 0;
  for (std::int64_t slab = 0; slab < slabs; ++slab) place += words.smaller[slab][row];
  words.order[place] = static_cast<std::int32_t>(row);
  words.sorted[place] = own;
}

constexpr int token_threads = 64;

/// Sums the rows of each token, which are adjacent in the order of `words`.
template <class T>
struct BackwardTokens {
  static constexpr int numel = pack_numel<T>;
  static constexpr int at_once = 8;  ///< rows loaded before the first is added
  static constexpr std::int64_t of_block = token_threads * numel;
  const DeviceWords* words;
  const T* output_gradient;
  float* gradient;
  std::int64_t vocabulary;
  std::int64_t rows;
  std::int64_t columns;
  bool aligned;

  [[nodiscard]] DSTRAIN_DEVICE bool has(std::int64_t place, std::int32_t token) const {
    return place < rows && words->sorted[place] == token;
  }
  /// Finds the rows of a token from `place` on, followed by -1.
  DSTRAIN_DEVICE void find(std::int64_t place,
                           std::int32_t token,
                           std::int32_t (&found)[at_once]) const {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const std::int64_t at = std::min(place + i, rows - 1);  // no branch between loads
      const std::int32_t row = words->order[at];
      found[i] = words->sorted[at] == token && place + i < rows ? row : -1;
    }
  }
  /// Adds rows to a part of a sum, in order. To avoid a branch between loads, it loads the first
  /// row where there is none.
  template <int count, class Part>
  DSTRAIN_DEVICE void add_rows(const Part& part,
                               const std::int32_t (&found)[at_once],
                               Pack<float, numel>& sum) const {
    Pack<T, numel> values[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      values[i] = part.load(output_gradient + (found[i] < 0 ? found[0] : found[i]) * columns);
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (found[i] >= 0) part.each([&](int j) { sum.at[j] += to_float(values[i].at[j]); });
    }
  }
  /// Adds all of the token's rows from `place` on to a part of its gradient, in order.
  template <class Part>
  DSTRAIN_DEVICE void add(const Part& part, std::int64_t place, std::int32_t token) const {
    float* const sums = gradient + token * columns;
    auto sum = part.load(sums);
    std::int32_t found[at_once];
    find(place, token, found);
    while (found[1] >= 0) {
      place += at_once;
      std::int32_t next[at_once];
      find(place, token, next);
      add_rows<at_once>(part, found, sum);
#pragma unroll
      for (int i = 0; i < at_once; ++i) found[i] = next[i];
    }
    if (found[0] >= 0) add_rows<1>(part, found, sum);
    part.store(sum, sums);
  }
};

/// One block per place of `order` and range of columns. The block at a token's first row adds all
/// of the token's rows. Tokens outside the table are skipped.
template <class T>
DSTRAIN_KERNEL(token_threads)
tokens_kernel(DSTRAIN_ARGUMENT BackwardTokens<T> args) {
  const std::int64_t place = block_x();
  const std::int32_t token = args.words->sorted[place];
  if (token < 0 || token >= args.vocabulary || (place > 0 && args.has(place - 1, token))) return;
  const std::int64_t column = block_y() * args.of_block + thread() * args.numel;
  const std::int64_t left = args.columns - column;
  constexpr int numel = BackwardTokens<T>::numel;
  if (left >= numel && args.aligned) {
    args.add(WholePart<numel>{column}, place, token);
  } else if (left > 0) {
    args.add(PartInSingles<numel>{column, left < numel ? static_cast<int>(left) : numel}, place,
             token);
  }
}

template <class T>
void add_token_rows(const EmbeddingBackwardArgs& args, StreamView stream) {
  const std::int64_t columns = args.output_gradient.shape()[2];
  const std::int64_t all_rows = args.tokens.numel();
  DeviceWords* const words = &op_state(stream).words();
  for (std::int64_t first = 0; first < all_rows; first += sorted_rows) {
    const std::int64_t rows = std::min(sorted_rows, all_rows - first);
    const std::int32_t* const tokens = elements<std::int32_t>(args.tokens) + first;
    launch("embedding_backward", sort_kernel,
           {.x = divide_up(rows, sort_threads),
            .y = divide_up(rows, sorted_slab_rows),
            .threads = sort_threads,
            .shared_bytes = sorted_slab_rows * sizeof(std::int32_t)},
           SortRows{tokens, rows, words}, stream);
    using Sums = BackwardTokens<T>;
    const T* const gradient = elements<T>(args.output_gradient) + first * columns;
    float* const target = floats(args.token_gradient);
    const Sums sums{words,
                    gradient,
                    target,
                    args.token_gradient.shape()[0],
                    rows,
                    columns,
                    columns % Sums::numel == 0 && are_aligned(gradient, target)};
    launch("embedding_backward", tokens_kernel<T>,
           {.x = rows, .y = divide_up(columns, Sums::of_block), .threads = token_threads}, sums,
           stream);
  }
}

template <class T>
void run_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  const Shape& shape = args.output_gradient.shape();
  if (!args.token_gradient.empty()) {
    if (!args.accumulate_token) gpu::fill_zero(args.token_gradient, stream);
    add_token_rows<T>(args, stream);
  }
  if (args.position_gradient.empty()) return;
  if (!args.accumulate_position) gpu::fill_zero(args.position_gradient, stream);
  const std::int64_t numel = shape[1] * shape[2];
  const T* const output_gradient = elements<T>(args.output_gradient);
  float* const gradient = floats(args.position_gradient);
  if (args.first_position.empty()) {
    const BackwardPositions<T> positions{output_gradient, gradient, shape[0], numel};
    return for_packs("embedding_backward", numel, positions.aligned(), positions, stream);
  }
  for_elements(
      "embedding_backward", numel,
      BackwardPositionsOfDocuments<T>{elements<std::int32_t>(args.first_position), output_gradient,
                                      gradient, shape[0], shape[1], shape[2]},
      stream);
}

}  // namespace

void embedding_forward(const EmbeddingArgs& args, StreamView stream) {
  const Shape& shape = args.output.shape();
  with_element_type(args.output.dtype(), [&](auto element) {
    using T = decltype(element);
    const Forward<T> forward{elements<std::int32_t>(args.tokens),
                             elements<std::int32_t>(args.first_position),
                             elements<std::int32_t>(args.past),
                             elements<T>(args.token_table),
                             elements<T>(args.position_table),
                             elements<T>(args.output),
                             args.token_table.shape()[0],
                             args.position_table.empty() ? 0 : args.position_table.shape()[0],
                             shape[1],
                             shape[2]};
    for_packs("embedding_forward", args.output.numel(), forward.aligned(), forward, stream);
  });
}

void embedding_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  with_element_type(args.output_gradient.dtype(),
                    [&](auto element) { run_backward<decltype(element)>(args, stream); });
}

}  // namespace dstrain::ops::gpu
