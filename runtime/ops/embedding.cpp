#include "runtime/ops/embedding.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// Requires that `activation` is (B, T, C) for the tokens.
void require_activation(const TensorView& activation, const TensorView& tokens) {
  const Shape& shape = activation.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "{} is not (B, T, C)", to_string(shape));
  require_tensor(activation, element_dtype(activation, "activation"), shape, "activation");
  require_tensor(tokens, DType::i32, {shape[0], shape[1]}, "tokens");
}

void require_first_position(const TensorView& first, const TensorView& tokens) {
  if (!first.empty()) require_tensor(first, DType::i32, tokens.shape(), "first_position");
}

void require_tokens(const TensorView& table, DType dtype, const TensorView& activation) {
  require_tensor(table, dtype, {table.shape()[0], columns_of(activation)}, "token table");
}

void require_positions(const TensorView& table, DType dtype, const TensorView& activation) {
  require_tensor(table, dtype, {table.shape()[0], columns_of(activation)}, "position table");
  const std::int64_t tokens = activation.shape()[1];
  DSTRAIN_CHECK(tokens <= table.shape()[0], "{} positions, table has {}", tokens, table.shape()[0]);
}

}  // namespace

void embedding_forward(const EmbeddingArgs& args, StreamView stream) {
  require_activation(args.output, args.tokens);
  require_first_position(args.first_position, args.tokens);
  if (!args.past.empty()) {
    require_tensor(args.past, DType::i32, {args.tokens.shape()[0]}, "past");
  }
  require_tokens(args.token_table, args.output.dtype(), args.output);
  if (!args.position_table.empty()) {
    require_positions(args.position_table, args.output.dtype(), args.output);
  }
  op_table(stream).embedding_forward(args, stream);
}

void embedding_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  const TensorView& gradient = args.output_gradient;
  require_activation(gradient, args.tokens);
  require_first_position(args.first_position, args.tokens);
  if (!args.token_gradient.empty()) require_tokens(args.token_gradient, DType::f32, gradient);
  if (!args.position_gradient.empty()) {
    require_positions(args.position_gradient, DType::f32, gradient);
  }
  op_table(stream).embedding_backward(args, stream);
}

}  // namespace dstrain::ops
