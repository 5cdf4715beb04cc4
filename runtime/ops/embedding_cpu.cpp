#include <algorithm>
#include <span>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

constexpr std::int64_t rows_per_task = 32;
constexpr std::int64_t columns_per_task = 64;

template <class T>
DSTRAIN_SIMD_CLONES void sum_kernel(const T* a, const T* b, T* output, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    output[i] = from_float<T>(to_float(a[i]) + to_float(b[i]));
}

template <class T>
DSTRAIN_SIMD_CLONES void add_kernel(const T* __restrict values,
                                    float* __restrict sum,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += to_float(values[i]);
}

void zero(const TensorView& view) {
  for_chunks(view.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    std::fill(floats(view) + begin, floats(view) + end, 0.0F);
  });
}

void require_known(std::span<const std::int32_t> tokens, std::int64_t vocabulary) {
  const auto outside = std::find_if(tokens.begin(), tokens.end(), [vocabulary](std::int32_t token) {
    return token < 0 || token >= vocabulary;
  });
  DSTRAIN_CHECK(outside == tokens.end(), "token {} of a vocabulary of {}", *outside, vocabulary);
}

/// Rows of the table of positions, by row of a batch with `tokens` per sequence.
class Positions {
 public:
  struct Views {
    TensorView first;
    TensorView past{};
  };
  /// Checks each row of `tokens`, if there is a table of `count` positions.
  Positions(const Views& views, const TensorView& tokens, std::int64_t count)
      : first_(elements<const std::int32_t>(views.first)),
        past_(elements<const std::int32_t>(views.past)),
        tokens_(tokens.shape()[1]) {
    for (std::int64_t row = 0; row < tokens.numel(); ++row) {
      const std::int64_t first = first_ == nullptr ? 0 : first_[row];
      DSTRAIN_CHECK(first >= 0 && (*this)(row) >= 0, "position {} of {} is first", first,
                    row % tokens_);
      DSTRAIN_CHECK(count == 0 || (*this)(row) < count, "position {} of {}", (*this)(row), count);
    }
  }
  [[nodiscard]] std::int64_t operator()(std::int64_t row) const {
    const std::int64_t before = past_ == nullptr ? 0 : past_[row / tokens_];
    return before + row % tokens_ - (first_ == nullptr ? 0 : first_[row]);
  }

 private:
  const std::int32_t* first_;
  const std::int32_t* past_;
  std::int64_t tokens_;
};

/// The number of positions of a table; 0: there is none.
std::int64_t positions_of(const TensorView& table) {
  return table.empty() ? 0 : table.shape()[0];
}

template <class T>
void run_forward(const EmbeddingArgs& args) {
  const Shape& shape = args.output.shape();
  const std::int64_t columns = shape[2];
  const auto tokens = host_access(args.tokens).as<const std::int32_t>();
  require_known(tokens, args.token_table.shape()[0]);
  const Positions positions({args.first_position, args.past}, args.tokens,
                            positions_of(args.position_table));
  for_chunks(shape[0] * shape[1], rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = tokens[static_cast<std::size_t>(row)];
      const T* const token_row = elements<T>(args.token_table) + token * columns;
      T* const output = elements<T>(args.output) + row * columns;
      if (args.position_table.empty()) {
        std::copy_n(token_row, columns, output);
      } else {
        sum_kernel(token_row, elements<T>(args.position_table) + positions(row) * columns, output,
                   columns);
      }
    }
  });
}

template <class T>
void run_backward(const EmbeddingBackwardArgs& args) {
  const Shape& shape = args.output_gradient.shape();
  const std::int64_t columns = shape[2];
  const auto tokens = host_access(args.tokens).as<const std::int32_t>();
  const bool for_tokens = !args.token_gradient.empty();
  const bool for_positions = !args.position_gradient.empty();
  const Positions positions({args.first_position}, args.tokens,
                            positions_of(args.position_gradient));
  if (for_tokens) require_known(tokens, args.token_gradient.shape()[0]);
  if (for_tokens && !args.accumulate_token) zero(args.token_gradient);
  if (for_positions && !args.accumulate_position) zero(args.position_gradient);
  for_chunks(columns, columns_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
      const std::int64_t token = tokens[static_cast<std::size_t>(row)];
      const T* const gradient = elements<T>(args.output_gradient) + row * columns + begin;
      if (for_tokens) {
        add_kernel(gradient, floats(args.token_gradient) + token * columns + begin, end - begin);
      }
      if (for_positions) {
        add_kernel(gradient, floats(args.position_gradient) + positions(row) * columns + begin,
                   end - begin);
      }
    }
  });
}

}  // namespace

namespace cpu {

void embedding_forward(const EmbeddingArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    with_element_type(args.output.dtype(),
                      [&](auto element) { run_forward<decltype(element)>(args); });
  });
}

void embedding_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    with_element_type(args.output_gradient.dtype(),
                      [&](auto element) { run_backward<decltype(element)>(args); });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
