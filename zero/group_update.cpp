#include "zero/group_update.h"

#include "runtime/ops/convert.h"

namespace dstrain::zero {

void update_group(const RankShards::GroupLease& lease,
                  const optim::Optimizer& optimizer,
                  const optim::StepTensors& step) {
  optim::OptimizerShard shard{
      .parameters = lease.exact, .gradients = lease.gradients, .states = lease.states};
  // In the same pass where both lie in one memory.
  const bool rounded =
      lease.parameters.dtype() == DType::bf16 && lease.parameters.device() == lease.exact.device();
  if (rounded) shard.working = lease.parameters;
  optimizer.step(shard, step, lease.stream);
  if (rounded || lease.exact.begins_with(lease.parameters)) return;
  ops::convert(lease.exact, lease.parameters, lease.stream);
}

}  // namespace dstrain::zero
