#include "zero/memory_plan.h"

#include <numeric>

#include "runtime/engine/staged_shard.h"
#include "zero/gather_slots.h"
#include "zero/parameter_shards.h"
#include "zero/resident_states.h"
#include "zero/saved_states.h"
#include "zero/sharded_gradients.h"
#include "zero/sharded_store.h"
#include "zero/whole_gradients.h"

namespace dstrain::zero {

Bytes MemoryPlan::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), Bytes{0});
}

Bytes MemoryPlan::model_states() const {
  return of(MemoryCategory::parameters) + of(MemoryCategory::gradients) +
         of(MemoryCategory::optimizer);
}

MemoryPlan plan_memory(const FlatLayout& layout, const MemoryPlanInput& input) {
  const StagePolicy policy = stage_policy(input.stage);
  MemoryPlan plan;
  const auto set = [&plan](MemoryCategory category, Bytes bytes) {
    plan.bytes.at(static_cast<std::size_t>(category)) += bytes;
  };
  set(MemoryCategory::parameters, ParameterShards::kept_bytes(layout, policy));
  set(MemoryCategory::gradients, policy.shard_gradients ? ShardedGradients::shard_bytes(layout)
                                                        : WholeGradients::bytes(layout));
  set(MemoryCategory::optimizer,
      ResidentStates::bytes(optimizer_runs(layout, input.stage),
                            state_count(input.optimizer_states.size(), layout.dtype())));
  if (policy.shard_gradients) {
    set(MemoryCategory::buffers,
        ShardedGradients::bucket_bytes(layout, {input.reduce_bucket_numel, input.overlap.enabled}));
  }
  if (ParameterShards::gathers(layout, policy)) {
    set(MemoryCategory::buffers, GatherSlots::bytes(layout, input.overlap));
  }
  set(MemoryCategory::activations, input.activations);
  plan.host = engine::StagedShard(saved_states(input.optimizer_states, layout.dtype()),
                                  saved_slices(layout, 0))
                  .bytes();
  return plan;
}

Bytes formula_bytes(const FormulaInput& input) {
  constexpr std::size_t adam_states = 2;
  const StagePolicy policy = stage_policy(input.stage);
  const auto share = [&](Bytes bytes_each, bool sharded) {
    return input.psi * bytes_each / (sharded ? input.world : 1);
  };
  const auto states = static_cast<Bytes>(state_count(adam_states, input.dtype));
  return share(size_of(input.dtype), policy.shard_parameters) +
         share(size_of(DType::f32), policy.shard_gradients) +
         share(states * size_of(DType::f32), policy.shard_optimizer);
}

std::string describe(const MemoryPlan& plan, Bytes formula) {
  std::string text = "memory per rank:";
  for (std::size_t i = 0; i < plan.bytes.size(); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", memory_category_names.at(i),
                        format_bytes(plan.bytes.at(i)));
  }
  return text + fmt::format(
                    "; in all {}, and {} of the host from the first save on. Model states {}, the "
                    "formula gives {}",
                    format_bytes(plan.total()), format_bytes(plan.host),
                    format_bytes(plan.model_states()), format_bytes(formula));
}

}  // namespace dstrain::zero
