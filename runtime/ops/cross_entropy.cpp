#include "runtime/ops/cross_entropy.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
void cross_entropy_forward(const CrossEntropyArgs& args, StreamView stream) {
  const Shape& shape = args.logits.values.shape();
  DSTRAIN_CHECK(shape.rank() == 2 && args.logits.piece_columns > 0,
                "logits {} are not (R, V) in pieces of {}", to_string(shape),
                args.logits.piece_columns);
  require_f32(args.logits.values, shape, "logits");
  require_f32(args.losses, {shape[0]}, "losses");
  if (!args.softmax.empty()) {
    require_f32(args.softmax, {shape[0], 2}, "softmax");
    require_f32(args.label_weight, {1}, "label_weight");
  }
  require_tensor(args.labels, DType::i32, {shape[0]}, "labels");
  require_tensor(args.loss_sum, DType::f64, {1}, "loss_sum");
  op_table(stream).cross_entropy_forward(args, stream);
}

void cross_entropy_backward(const CrossEntropyGradientArgs& args, StreamView stream) {
  const Shape& shape = args.logits.shape();
  DSTRAIN_CHECK(shape.rank() == 2, "logits {} are not (R, W)", to_string(shape));
  require_f32(args.logits, shape, "logits");
  require_tensor(args.gradient, element_dtype(args.gradient, "gradient"), shape, "gradient");
  require_f32(args.softmax, {shape[0], 2}, "softmax");
  require_tensor(args.labels, DType::i32, {shape[0]}, "labels");
  require_f32(args.label_weight, {1}, "label_weight");
  op_table(stream).cross_entropy_backward(args, stream);
}

}  // namespace dstrain::ops
