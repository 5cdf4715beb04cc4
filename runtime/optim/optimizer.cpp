#include "runtime/optim/optimizer.h"

#include "runtime/ops/update.h"

namespace dstrain::optim {
namespace {

TensorView part_of(const TensorView& values, const ParameterSpan& span) {
  return values.empty() ? values : values.part(span.offset, {span.numel});
}

/// The arguments for a whole shard.
ops::UpdateArgs arguments(std::size_t rule, const OptimizerShard& shard, const StepTensors& step) {
  ops::UpdateArgs args{.rule = rule,
                       .parameters = shard.parameters,
                       .gradients = shard.gradients,
                       .scalars = step.scalars,
                       .decision = step.decision,
                       .working = shard.working};
  std::ranges::copy(shard.states, args.states.begin());
  return args;
}

/// The arguments for the span of one parameter.
ops::UpdateArgs cut(ops::UpdateArgs args, const ParameterSpan& span) {
  args.parameters = part_of(args.parameters, span);
  args.gradients = part_of(args.gradients, span);
  for (TensorView& state : args.states) state = part_of(state, span);
  args.working = part_of(args.working, span);
  args.sums = span.sums;
  return args;
}

}  // namespace

std::int64_t Optimizer::sums() const {
  return rules::is_layerwise(rule_) ? ops::norm_sums : 0;
}

void Optimizer::measure(const OptimizerShard& shard,
                        const StepTensors& step,
                        StreamView stream) const {
  const ops::UpdateArgs args = arguments(rule_.index(), shard, step);
  for (const ParameterSpan& span : shard.spans) ops::measure_update(cut(args, span), stream);
}

void Optimizer::step(const OptimizerShard& shard,
                     const StepTensors& step,
                     StreamView stream) const {
  const ops::UpdateArgs args = arguments(rule_.index(), shard, step);
  if (!rules::is_layerwise(rule_)) return ops::update(args, stream);
  for (const ParameterSpan& span : shard.spans) ops::update(cut(args, span), stream);
}

}  // namespace dstrain::optim
