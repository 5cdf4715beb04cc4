#include "zero/group_update.h"

#include "runtime/ops/convert.h"

namespace dstrain::zero {

void measure_group(const RankShards::GroupLease& lease,
                   const optim::Optimizer& optimizer,
                   const optim::StepTensors& step,
                   std::span<const optim::ParameterSpan> spans) {
  optimizer.measure({.parameters = lease.exact,
                     .gradients = lease.gradients,
                     .states = lease.states,
                     .spans = spans},
                    step, lease.stream);
}

void update_group(const RankShards::GroupLease& lease,
                  const optim::Optimizer& optimizer,
                  const optim::StepTensors& step,
                  std::span<const optim::ParameterSpan> spans) {
  optim::OptimizerShard shard{.parameters = lease.exact,
                              .gradients = lease.gradients,
                              .states = lease.states,
                              .spans = spans};
  // In the same pass where both lie in one memory.
  const bool rounded =
      is_half(lease.parameters.dtype()) && lease.parameters.device() == lease.exact.device();
  if (rounded) shard.working = lease.parameters;
  optimizer.step(shard, step, lease.stream);
  if (rounded || lease.exact.begins_with(lease.parameters)) return;
  ops::convert(lease.exact, lease.parameters, lease.stream);
}

}  // namespace dstrain::zero
