#include "runtime/ops/update.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

void require_valid(const UpdateArgs& args, bool with_gradients, bool with_sums) {
  const Shape shape{args.parameters.numel()};
  require_f32(args.parameters, shape, "parameters");
  if (with_gradients) require_f32(args.gradients, shape, "gradients");
  rules::Rules::visit(args.rule, [&](auto rule) {
    for (std::size_t i = 0; i < rule.states.size(); ++i) {
      require_f32(args.states[i], shape, rule.states[i].data());
    }
  });
  require_f32(args.scalars, {rules::scalar_numel}, "scalars");
  if (with_sums) require_tensor(args.sums, DType::i64, {norm_sums, norm_sum_numel}, "sums");
  if (!args.decision.empty()) {
    require_tensor(args.decision, DType::f64, {StepDecision::numel}, "decision");
  }
  if (!args.working.empty()) require_half(args.working, shape, "working");
}

}  // namespace

void update(const UpdateArgs& args, StreamView stream) {
  const bool layerwise = rules::is_layerwise(args.rule);
  require_valid(args, !layerwise, layerwise);
  op_table(stream).update(args, stream);
}

void measure_update(const UpdateArgs& args, StreamView stream) {
  DSTRAIN_CHECK(rules::is_layerwise(args.rule), "rule {} is elementwise", args.rule);
  require_valid(args, true, true);
  op_table(stream).measure_update(args, stream);
}

}  // namespace dstrain::ops
