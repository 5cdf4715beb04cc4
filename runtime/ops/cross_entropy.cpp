#include "runtime/ops/cross_entropy.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void cross_entropy(const CrossEntropyArgs& args, StreamView stream) {
  const LogitPieces& logits = args.logits;
  const Shape& shape = logits.values.shape();
  DSTRAIN_CHECK(shape.rank() == 2 && logits.piece_columns > 0,
                "logits {} are not (R, V) in pieces of {}", to_string(shape), logits.piece_columns);
  require_f32(logits.values, shape, "logits");
  require_tensor(args.labels, DType::i32, {shape[0]}, "labels");
  require_f32(args.losses, {shape[0]}, "losses");
  require_tensor(args.loss_sum, DType::f64, {1}, "loss_sum");
  if (!args.label_weight.empty()) {
    require_f32(args.label_weight, {1}, "label_weight");
    require_f32(args.softmax, {shape[0], 2}, "softmax");
    const TensorView first = logits.gradient(0);
    require_tensor(first, element_dtype(first, "gradient"), {shape[0], logits.width(0)},
                   "gradient");
  }
  op_table(stream).cross_entropy(args, stream);
}

}  // namespace dstrain::ops
