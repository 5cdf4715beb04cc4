#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/classifier_plan.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/cross_entropy_cpu.h"

namespace dstrain::ops::cpu {
namespace {

ClassifierPlan cut_workspace(const TensorView& input,
                             const TensorView& weight,
                             const TensorView& workspace) {
  Arena arena(workspace);
  return {arena,
          {.rows = input.shape()[0],
           .channels = input.shape()[1],
           .classes = weight.shape()[0],
           .dtype = input.dtype()}};
}

void compute_logits(const ClassifierPlan& plan,
                    const TensorView& input,
                    const TensorView& weight,
                    StreamView stream) {
  for (std::int64_t piece = 0; piece < plan.logits().count(); ++piece) {
    cpu::matmul(plan.logits_product(input, weight, piece), stream);
  }
}

/// Computes a piece's gradient and its products in turn, so that they read it from the cache.
void compute_gradients(const ClassifierPlan& plan,
                       const ClassifierLossArgs& args,
                       const CrossEntropyRows& rows,
                       StreamView stream) {
  for (std::int64_t piece = 0; piece < plan.logits().count(); ++piece) {
    const TensorView gradient = plan.gradient(piece);
    cpu_stream(stream).launch(
        [rows, piece, gradient] { cross_entropy_gradient(rows, piece, gradient); });
    if (!args.weight_gradient.empty()) {
      cpu::matmul(
          plan.weight_product(args.input, args.weight_gradient, args.accumulate_weight, piece),
          stream);
    }
    cpu::matmul(plan.input_product(args.weight, piece), stream);
  }
  cpu::convert(plan.input_gradient(), args.input_gradient, stream);
}

}  // namespace

void classifier_logits(const ClassifierLogitsArgs& args, StreamView stream) {
  const ClassifierPlan plan = cut_workspace(args.input, args.weight, args.workspace);
  compute_logits(plan, args.input, args.weight, stream);
  const LogitPieces& logits = plan.logits();
  for (std::int64_t piece = 0; piece < logits.count(); ++piece) {
    cpu::copy_rows(logits.piece(piece),
                   args.logits.columns(logits.first_column(piece), logits.width(piece)), stream);
  }
}

void classifier_loss(const ClassifierLossArgs& args, StreamView stream) {
  const ClassifierPlan plan = cut_workspace(args.input, args.weight, args.workspace);
  compute_logits(plan, args.input, args.weight, stream);
  const CrossEntropyRows rows{.logits = plan.logits(),
                              .labels = args.labels,
                              .factor = args.factor,
                              .label_weight = args.label_weight,
                              .losses = plan.losses(),
                              .softmax = plan.softmax()};
  cpu_stream(stream).launch([rows, sum = args.loss_sum] { cross_entropy_losses(rows, sum); });
  if (!args.label_weight.empty()) compute_gradients(plan, args, rows, stream);
}

}  // namespace dstrain::ops::cpu
