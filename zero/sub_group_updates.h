#pragma once
#include <vector>

#include "runtime/optim/parameter_groups.h"
#include "runtime/tensor/buffer.h"
#include "zero/parameter_sums.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Runs the passes of a step over sub-groups. Optimizers see only f32. Values that a rank keeps in
/// 16 bits are widened into a workspace, a chunk at a time, and those that a pass changes are
/// rounded back stochastically (ops/round_stochastic.h). Asynchronous on the stream of the lease;
/// the host's sub-groups are updated by one thread at a time. All arguments must outlive it.
class SubGroupUpdates {
 public:
  struct Inputs {
    const RankShards& shards;
    const optim::ParameterGroups& groups;
    const ParameterSums* sums = nullptr;  ///< null: no optimizer needs any
    MemoryResource& device;
    MemoryResource& host;
  };
  SubGroupUpdates(const Inputs& inputs, StreamView stream);
  /// Bytes of workspace for the sub-groups that the device updates, or for those of the host.
  static Bytes bytes(const ShardPlan& plan, bool by_host);

  /// The first pass of a step over a sub-group, for optimizers that need sums. `step` has the
  /// scalars of all parameter groups.
  void measure(SubGroupId sub_group,
               const RankShards::SubGroupLease& lease,
               const optim::StepTensors& step) const;
  /// Updates a sub-group from its gradients, including the parameters that units see.
  void update(SubGroupId sub_group,
              const RankShards::SubGroupLease& lease,
              const optim::StepTensors& step) const;

 private:
  class Chunk;
  /// Calls `pass(chunk)` for each chunk in order.
  template <class Pass>
  void for_chunks(SubGroupId sub_group,
                  const RankShards::SubGroupLease& lease,
                  const Pass& pass) const;
  [[nodiscard]] optim::ParameterGroupId parameter_group(SubGroupId sub_group) const;

  const RankShards& shards_;
  const optim::ParameterGroups& groups_;
  TypedVector<SubGroupId, std::vector<optim::ParameterSpan>> spans_;  ///< for rules with sums
  Buffer device_;
  Buffer host_;
};

}  // namespace dstrain::zero
