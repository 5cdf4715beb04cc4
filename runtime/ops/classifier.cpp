#include "runtime/ops/classifier.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

ClassifierSizes check_layer(const TensorView& input,
                            const TensorView& weight,
                            const TensorView& workspace,
                            StreamView stream) {
  const ClassifierSizes sizes{.rows = rows_of(input),
                              .channels = columns_of(input),
                              .classes = rows_of(weight),
                              .dtype = element_dtype(input, "input")};
  require_tensor(input, sizes.dtype, {sizes.rows, sizes.channels}, "input");
  require_tensor(weight, sizes.dtype, {sizes.classes, sizes.channels}, "weight");
  require_workspace(workspace, classifier_workspace(sizes, stream.device().kind));
  return sizes;
}

}  // namespace

void classifier_logits(const ClassifierLogitsArgs& args, StreamView stream) {
  const ClassifierSizes sizes = check_layer(args.input, args.weight, args.workspace, stream);
  require_f32(args.logits, {sizes.rows, sizes.classes}, "logits");
  op_table(stream).classifier_logits(args, stream);
}

void classifier_loss(const ClassifierLossArgs& args, StreamView stream) {
  const ClassifierSizes sizes = check_layer(args.input, args.weight, args.workspace, stream);
  require_tensor(args.labels, DType::i32, {sizes.rows}, "labels");
  require_tensor(args.loss_sum, DType::f64, {1}, "loss_sum");
  if (!args.label_weight.empty()) {
    require_f32(args.label_weight, {1}, "label_weight");
    require_tensor(args.input_gradient, sizes.dtype, args.input.shape(), "input_gradient");
    if (!args.weight_gradient.empty()) {
      require_f32(args.weight_gradient, args.weight.shape(), "weight_gradient");
    }
  }
  op_table(stream).classifier_loss(args, stream);
}

}  // namespace dstrain::ops
