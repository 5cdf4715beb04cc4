#pragma once
#include <vector>

#include "runtime/optim/parameter_groups.h"
#include "runtime/tensor/buffer.h"
#include "zero/parameter_sums.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// The passes of a step over sub-groups. Optimizers see f32 alone: what a rank keeps in 16 bits is
/// widened into a workspace, a chunk at a time, and what a pass has made of it is rounded back,
/// stochastically (ops/round_stochastic.h): what a pass leaves alone stays as it is. Asynchronous
/// on the lease's stream; what the host updates comes from one thread at a time. All must outlive
/// it.
class SubGroupUpdates {
 public:
  struct Inputs {
    const RankShards& shards;
    const optim::ParameterGroups& groups;
    const ParameterSums* sums = nullptr;  ///< null: no optimizer takes any
    MemoryResource& device;
    MemoryResource& host;
  };
  SubGroupUpdates(const Inputs& inputs, StreamView stream);
  /// Of workspace, for what the device updates, or for what the host does.
  static Bytes bytes(const ShardPlan& plan, bool by_host);

  /// The first pass of a step over a sub-group, of optimizers that take sums. `step`: of all
  /// parameter groups.
  void measure(SubGroupId sub_group,
               const RankShards::SubGroupLease& lease,
               const optim::StepTensors& step) const;
  /// Updates a sub-group from its gradients, its parameters as units see them included.
  void update(SubGroupId sub_group,
              const RankShards::SubGroupLease& lease,
              const optim::StepTensors& step) const;

 private:
  class Chunk;
  /// Calls `pass(chunk)` for one chunk after the other.
  template <class Pass>
  void for_chunks(SubGroupId sub_group,
                  const RankShards::SubGroupLease& lease,
                  const Pass& pass) const;
  [[nodiscard]] optim::ParameterGroupId parameter_group(SubGroupId sub_group) const;

  const RankShards& shards_;
  const optim::ParameterGroups& groups_;
  TypedVector<SubGroupId, std::vector<optim::ParameterSpan>> spans_;  ///< where they are needed
  Buffer device_;
  Buffer host_;
};

}  // namespace dstrain::zero
