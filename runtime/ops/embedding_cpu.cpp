#include <algorithm>

#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
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

/// (B, T, C) of `activation`, checked against the tokens and both tables, which are of
/// `table_dtype`.
Shape checked_shape(const TensorView& activation,
                    DType table_dtype,
                    std::span<const std::int32_t> tokens,
                    const TensorView& token_table,
                    const TensorView& position_table) {
  const Shape& shape = activation.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "{} is not (B, T, C)", to_string(shape));
  require_tensor(activation, element_dtype(activation, "activation"), shape, "activation");
  require_tensor(token_table, table_dtype, {token_table.shape()[0], shape[2]}, "token table");
  require_tensor(position_table, table_dtype, {position_table.shape()[0], shape[2]},
                 "position table");
  DSTRAIN_CHECK(static_cast<std::int64_t>(tokens.size()) == shape[0] * shape[1], "{} tokens for {}",
                tokens.size(), to_string(shape));
  DSTRAIN_CHECK(shape[1] <= position_table.shape()[0], "{} positions, table has {}", shape[1],
                position_table.shape()[0]);
  const std::int64_t vocabulary = token_table.shape()[0];
  const auto outside = std::find_if(tokens.begin(), tokens.end(), [vocabulary](std::int32_t token) {
    return token < 0 || token >= vocabulary;
  });
  DSTRAIN_CHECK(outside == tokens.end(), "token {} of a vocabulary of {}", *outside, vocabulary);
  return shape;
}

template <class T>
void run_forward(const EmbeddingArgs& args, const Shape& shape) {
  const std::int64_t columns = shape[2];
  for_chunks(shape[0] * shape[1], rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = args.tokens[static_cast<std::size_t>(row)];
      sum_kernel(elements<T>(args.token_table) + token * columns,
                 elements<T>(args.position_table) + row % shape[1] * columns,
                 elements<T>(args.output) + row * columns, columns);
    }
  });
}

template <class T>
void run_backward(const EmbeddingBackwardArgs& args, const Shape& shape) {
  const std::int64_t columns = shape[2];
  if (!args.accumulate_token) zero(args.token_gradient);
  if (!args.accumulate_position) zero(args.position_gradient);
  for_chunks(columns, columns_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
      const std::int64_t token = args.tokens[static_cast<std::size_t>(row)];
      const T* const gradient = elements<T>(args.output_gradient) + row * columns + begin;
      add_kernel(gradient, floats(args.token_gradient) + token * columns + begin, end - begin);
      add_kernel(gradient, floats(args.position_gradient) + row % shape[1] * columns + begin,
                 end - begin);
    }
  });
}

}  // namespace

void embedding_forward(const EmbeddingArgs& args, StreamView stream) {
  const DType dtype = element_dtype(args.output, "output");
  const Shape shape =
      checked_shape(args.output, dtype, args.tokens, args.token_table, args.position_table);
  stream.launch([args, shape, dtype] {
    with_element_type(dtype, [&](auto element) { run_forward<decltype(element)>(args, shape); });
  });
}

void embedding_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  const DType dtype = element_dtype(args.output_gradient, "output_gradient");
  const Shape shape = checked_shape(args.output_gradient, DType::f32, args.tokens,
                                    args.token_gradient, args.position_gradient);
  stream.launch([args, shape, dtype] {
    with_element_type(dtype, [&](auto element) { run_backward<decltype(element)>(args, shape); });
  });
}

}  // namespace dstrain::ops
