#include <limits>

#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/fill_zero.h"

namespace dstrain::ops::gpu {
namespace {

/// A token outside the table makes NaNs, which end the step; so does a position before the first.
template <class T>
struct Forward {
  static constexpr int numel = pack_numel<T>;
  const std::int32_t* tokens;
  const std::int32_t* first_position;  ///< or null
  const T* token_table;
  const T* position_table;  ///< or null
  T* output;
  std::int64_t vocabulary;
  std::int64_t length;  ///< tokens of a sequence
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
    const std::int64_t position = row % length - first;
    Pack<T, n> values;
    if (token < 0 || token >= vocabulary || first < 0 || position < 0) {
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

template <class T>
struct BackwardPositions {
  const std::int32_t* first_position;  ///< or null
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
      const std::int64_t end = begin + (first_position == nullptr ? position + 1 : length);
      for (std::int64_t row = begin + position; row < end; ++row) {
        if (first_position != nullptr && row - begin - first_position[row] != position) continue;
        sum += to_float(output_gradient[row * columns + column]);
      }
    }
    gradient[i] = sum;
  }
};

template <class T>
struct BackwardTokens {
  const std::int32_t* tokens;
  const T* output_gradient;
  float* gradient;
  std::int64_t vocabulary;
  std::int64_t rows;
  std::int64_t columns;
};

constexpr int token_threads = 256;

/// Whether a row before `row` has its token. All threads of the block call, and hear the same.
DSTRAIN_DEVICE bool came_before(const std::int32_t* tokens, std::int64_t row) {
  const std::int32_t own = tokens[row];
  for (std::int64_t begin = 0; begin < row; begin += token_threads) {
    const std::int64_t at = begin + thread();
    if (sync_any(at < row && tokens[at] == own)) return true;
  }
  return false;
}

/// A block of threads for each row; that of a token's first row adds up all of its rows, in order.
template <class T>
DSTRAIN_KERNEL(token_threads)
tokens_kernel(DSTRAIN_ARGUMENT BackwardTokens<T> args) {
  struct Shared {
    std::int32_t tokens[token_threads];
  };
  auto& s = shared<Shared>();
  const std::int64_t row = block_x();
  const std::int32_t own = args.tokens[row];
  if (own < 0 || own >= args.vocabulary || came_before(args.tokens, row)) return;
  float* const sums = args.gradient + own * args.columns;
  for (std::int64_t begin = row; begin < args.rows; begin += token_threads) {
    const std::int64_t at = begin + thread();
    const std::int32_t token = at < args.rows ? args.tokens[at] : -1;
    s.tokens[thread()] = token;
    if (!sync_any(token == own)) continue;
    for (int i = 0; i < token_threads; ++i) {
      if (s.tokens[i] != own) continue;
      const T* const values = args.output_gradient + (begin + i) * args.columns;
      for (std::int64_t c = thread(); c < args.columns; c += token_threads) {
        sums[c] += to_float(values[c]);
      }
    }
    sync();
  }
}

template <class T>
void run_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  const Shape& shape = args.output_gradient.shape();
  const T* const gradient = elements<T>(args.output_gradient);
  const std::int64_t rows = shape[0] * shape[1];
  const std::int64_t columns = shape[2];
  if (!args.token_gradient.empty()) {
    if (!args.accumulate_token) gpu::fill_zero(args.token_gradient, stream);
    launch(
        "embedding_backward", tokens_kernel<T>,
        {.x = rows, .threads = token_threads, .shared_bytes = token_threads * sizeof(std::int32_t)},
        BackwardTokens<T>{elements<std::int32_t>(args.tokens), gradient,
                          floats(args.token_gradient), args.token_gradient.shape()[0], rows,
                          columns},
        stream);
  }
  if (args.position_gradient.empty()) return;
  if (!args.accumulate_position) gpu::fill_zero(args.position_gradient, stream);
  for_elements("embedding_backward", shape[1] * columns,
               BackwardPositions<T>{elements<std::int32_t>(args.first_position), gradient,
                                    floats(args.position_gradient), shape[0], shape[1], columns},
               stream);
}

}  // namespace

void embedding_forward(const EmbeddingArgs& args, StreamView stream) {
  const Shape& shape = args.output.shape();
  with_element_type(args.output.dtype(), [&](auto element) {
    using T = decltype(element);
    const Forward<T> forward{elements<std::int32_t>(args.tokens),
                             elements<std::int32_t>(args.first_position),
                             elements<T>(args.token_table),
                             elements<T>(args.position_table),
                             elements<T>(args.output),
                             args.token_table.shape()[0],
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
