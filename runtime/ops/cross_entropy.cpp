#include "runtime/ops/cross_entropy.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

void require_labels(std::span<const std::int32_t> labels, std::int64_t rows) {
  DSTRAIN_CHECK(static_cast<std::int64_t>(labels.size()) == rows, "{} labels for {} rows",
                labels.size(), rows);
}

}  // namespace

void cross_entropy_forward(const CrossEntropyArgs& args, StreamView stream) {
  const Shape& shape = args.logits.values.shape();
  DSTRAIN_CHECK(shape.rank() == 2 && args.logits.piece_columns > 0,
                "logits {} are not (R, V) in pieces of {}", to_string(shape),
                args.logits.piece_columns);
  require_f32(args.logits.values, shape, "logits");
  require_f32(args.losses, {shape[0]}, "losses");
  if (!args.softmax.empty()) require_f32(args.softmax, {shape[0], 2}, "softmax");
  require_labels(args.labels, shape[0]);
  DSTRAIN_CHECK(args.loss_sum != nullptr && args.label_count != nullptr, "no place for the loss");
  for (const std::int32_t label : args.labels) {
    DSTRAIN_CHECK(label == ignored_label || (label >= 0 && label < shape[1]),
                  "label {} of a vocabulary of {}", label, shape[1]);
  }
  op_table(stream).cross_entropy_forward(args, stream);
}

void cross_entropy_backward(const CrossEntropyGradientArgs& args, StreamView stream) {
  const Shape& shape = args.logits.shape();
  DSTRAIN_CHECK(shape.rank() == 2, "logits {} are not (R, W)", to_string(shape));
  require_f32(args.logits, shape, "logits");
  require_tensor(args.gradient, element_dtype(args.gradient, "gradient"), shape, "gradient");
  require_f32(args.softmax, {shape[0], 2}, "softmax");
  require_labels(args.labels, shape[0]);
  op_table(stream).cross_entropy_backward(args, stream);
}

}  // namespace dstrain::ops
