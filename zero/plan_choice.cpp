#include "zero/plan_choice.h"

#include "zero/stage_policy.h"

namespace dstrain::zero {

std::vector<PlanChoice> plan_choices(std::span<const MemoryTier> tiers) {
  constexpr MemoryTier only_device[] = {MemoryTier::device};
  std::vector<PlanChoice> choices;
  for (int stage = 0; stage < static_cast<int>(stage_policies.size()); ++stage) {
    const StagePolicy& policy = stage_policy(stage);
    const auto when = [&](bool sharded) {
      return sharded ? tiers : std::span(only_device);
    };
    for (const bool lean : {false, true}) {
      if (lean && !policy.shard_parameters) continue;
      for (const bool checkpointing : {false, true}) {
        for (const MemoryTier parameters : when(policy.shard_parameters)) {
          for (const MemoryTier optimizer : when(policy.shard_optimizer)) {
            if (optimizer == MemoryTier::nvme && !policy.shard_parameters) continue;
            choices.push_back({stage, optimizer, parameters, checkpointing, lean});
          }
        }
      }
    }
  }
  return choices;
}

}  // namespace dstrain::zero
