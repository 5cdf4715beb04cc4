#include "zero/plan_choice.h"

#include "zero/stage_policy.h"

namespace dstrain::zero {

namespace {

/// Adds the stage with each tier for what it shards; the rest of `choice` is fixed.
void add_places(PlanChoice choice,
                std::span<const MemoryTier> tiers,
                std::vector<PlanChoice>& choices) {
  constexpr MemoryTier only_device[] = {MemoryTier::device};
  const StagePolicy& policy = stage_policy(choice.stage);
  const auto when = [&](bool sharded) {
    return sharded ? tiers : std::span(only_device);
  };
  for (const MemoryTier parameters : when(policy.shard_parameters)) {
    for (const MemoryTier optimizer : when(policy.shard_optimizer)) {
      if (optimizer == MemoryTier::nvme && !policy.shard_parameters) continue;
      choice.parameters = parameters;
      choice.optimizer = optimizer;
      choices.push_back(choice);
    }
  }
}

}  // namespace

std::vector<PlanChoice> plan_choices(std::span<const MemoryTier> tiers) {
  std::vector<PlanChoice> choices;
  for (int stage = 0; stage < static_cast<int>(stage_policies.size()); ++stage) {
    for (const bool lean : {false, true}) {
      if (lean && !stage_policy(stage).shard_parameters) continue;
      for (const bool checkpointing : {false, true}) {
        add_places({.stage = stage, .checkpointing = checkpointing, .lean = lean}, tiers, choices);
      }
    }
  }
  return choices;
}

}  // namespace dstrain::zero
