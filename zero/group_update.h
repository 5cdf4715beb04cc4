#pragma once
#include <span>

#include "runtime/optim/optimizer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The first pass of a step over a sub-group, of optimizers that take sums; `spans` are those of
/// the sub-group. Asynchronous on the lease's stream.
void measure_group(const RankShards::GroupLease& lease,
                   const optim::Optimizer& optimizer,
                   const optim::StepTensors& step,
                   std::span<const optim::ParameterSpan> spans);

/// Updates a sub-group from its gradients, its parameters as units see them included; `spans`:
/// likewise. Asynchronous on the lease's stream.
void update_group(const RankShards::GroupLease& lease,
                  const optim::Optimizer& optimizer,
                  const optim::StepTensors& step,
                  std::span<const optim::ParameterSpan> spans = {});

}  // namespace dstrain::zero
