#pragma once
#include "runtime/optim/optimizer.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Updates a sub-group from its gradients, its parameters as units see them included. Asynchronous
/// on the lease's stream.
void update_group(const RankShards::GroupLease& lease,
                  const optim::Optimizer& optimizer,
                  const optim::StepTensors& step);

}  // namespace dstrain::zero
