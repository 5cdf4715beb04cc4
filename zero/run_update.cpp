#include "zero/run_update.h"

#include "runtime/ops/convert.h"

namespace dstrain::zero {

void update_run(const StateRun& run,
                const engine::StateLease& lease,
                TensorView parameters,
                const optim::Optimizer& optimizer,
                const optim::StepScalars& scalars,
                StreamView stream) {
  optim::OptimizerShard shard{.parameters = run.master ? lease.states.back() : parameters,
                              .gradients = lease.gradients,
                              .states = lease.states.first(optimizer.state_names().size())};
  if (parameters.dtype() == DType::bf16) shard.working = parameters;
  optimizer.step(shard, scalars, stream);
  if (run.master && parameters.dtype() == DType::f32) {
    ops::convert(lease.states.back(), parameters, stream);
  }
}

}  // namespace dstrain::zero
