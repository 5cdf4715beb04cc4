#include "runtime/ops/embedding.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// `activation` is (B, T, C) of the tokens and fits both tables, which are of `table_dtype`.
void require_fit(const TensorView& activation,
                 DType table_dtype,
                 const TensorView& tokens,
                 const TensorView& token_table,
                 const TensorView& position_table) {
  const Shape& shape = activation.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "{} is not (B, T, C)", to_string(shape));
  require_tensor(activation, element_dtype(activation, "activation"), shape, "activation");
  require_tensor(token_table, table_dtype, {token_table.shape()[0], shape[2]}, "token table");
  require_tensor(position_table, table_dtype, {position_table.shape()[0], shape[2]},
                 "position table");
  require_tensor(tokens, DType::i32, {shape[0], shape[1]}, "tokens");
  DSTRAIN_CHECK(shape[1] <= position_table.shape()[0], "{} positions, table has {}", shape[1],
                position_table.shape()[0]);
}

}  // namespace

void embedding_forward(const EmbeddingArgs& args, StreamView stream) {
  require_fit(args.output, args.output.dtype(), args.tokens, args.token_table, args.position_table);
  op_table(stream).embedding_forward(args, stream);
}

void embedding_backward(const EmbeddingBackwardArgs& args, StreamView stream) {
  require_fit(args.output_gradient, DType::f32, args.tokens, args.token_gradient,
              args.position_gradient);
  op_table(stream).embedding_backward(args, stream);
}

}  // namespace dstrain::ops
