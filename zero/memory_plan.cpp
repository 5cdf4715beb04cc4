#include "zero/memory_plan.h"

#include <numeric>

#include "runtime/engine/staged_shard.h"
#include "zero/gather_slots.h"
#include "zero/parameter_shards.h"
#include "zero/resident_states.h"
#include "zero/saved_states.h"
#include "zero/sharded_gradients.h"
#include "zero/state_runs.h"
#include "zero/swapped_parameters.h"
#include "zero/swapped_states.h"
#include "zero/whole_gradients.h"

namespace dstrain::zero {

Bytes MemoryPlan::total(MemoryTier tier) const {
  const CategoryBytes& categories = bytes.at(static_cast<std::size_t>(tier));
  return std::accumulate(categories.begin(), categories.end(), Bytes{0});
}

Bytes MemoryPlan::model_states() const {
  Bytes sum = 0;
  for (const CategoryBytes& tier : bytes) {
    for (const auto category :
         {MemoryCategory::parameters, MemoryCategory::gradients, MemoryCategory::optimizer}) {
      sum += tier.at(static_cast<std::size_t>(category));
    }
  }
  return sum;
}

namespace {

/// What a rank keeps of the parameters, and what serves them whole.
void add_parameters(MemoryPlan& plan, const FlatLayout& layout, const MemoryPlanInput& input) {
  const Offload& offload = input.offload;
  constexpr MemoryTier device = MemoryTier::device;
  constexpr MemoryTier swapped = MemoryTier::nvme;
  const ParameterShards::Options parameters{stage_policy(input.stage), input.overlap, offload};
  plan.add(device, MemoryCategory::parameters,
           ParameterShards::kept_bytes(layout, parameters, false));
  plan.add(offload.parameters == swapped ? offload.staging : offload.parameters,
           MemoryCategory::parameters, ParameterShards::kept_bytes(layout, parameters, true));
  plan.add(swapped, MemoryCategory::parameters, SwappedParameters::file_bytes(layout, offload));
  plan.add(offload.staging, MemoryCategory::buffers,
           SwappedParameters::buffer_bytes(layout, offload));
  if (ParameterShards::gathers(layout, parameters)) {
    plan.add(device, MemoryCategory::buffers, GatherSlots::bytes(layout, input.overlap));
  }
}

/// Gradients and the optimizer's states.
void add_update(MemoryPlan& plan, const FlatLayout& layout, const MemoryPlanInput& input) {
  const StagePolicy policy = stage_policy(input.stage);
  const Offload& offload = input.offload;
  constexpr MemoryTier device = MemoryTier::device;
  constexpr MemoryTier swapped = MemoryTier::nvme;
  const std::vector<MemoryTier> homes = optimizer_homes(layout, offload);
  plan.add(device, MemoryCategory::gradients,
           policy.shard_gradients ? GradientShards::bytes(layout, {homes, false})
                                  : WholeGradients::bytes(layout));
  plan.add(offload.optimizer, MemoryCategory::gradients,
           GradientShards::bytes(layout, {homes, true}));
  if (policy.shard_gradients) {
    plan.add(
        device, MemoryCategory::buffers,
        ShardedGradients::bucket_bytes(layout, {input.reduce_bucket_numel, input.overlap.enabled}));
  }
  const std::vector<StateRun> runs =
      state_runs(layout, {input.stage, std::ssize(input.optimizer_states), offload});
  for (const MemoryTier tier : {device, MemoryTier::host, MemoryTier::pinned}) {
    plan.add(tier, MemoryCategory::optimizer, ResidentStates::bytes(runs, tier));
  }
  plan.add(swapped, MemoryCategory::optimizer, SwappedStates::state_bytes(runs, offload));
  plan.add(swapped, MemoryCategory::gradients, SwappedStates::gradient_bytes(runs, offload));
  plan.add(offload.staging, MemoryCategory::buffers, SwappedStates::buffer_bytes(runs, offload));
}

/// The copy that a save writes.
void add_save(MemoryPlan& plan, const FlatLayout& layout, const MemoryPlanInput& input) {
  plan.save_copy = engine::StagedShard(saved_states(input.optimizer_states, layout.dtype()),
                                       saved_slices(layout, 0))
                       .bytes();
  const bool to_disk = input.offload.optimizer == MemoryTier::nvme;
  plan.add(to_disk ? MemoryTier::nvme : MemoryTier::host, MemoryCategory::buffers, plan.save_copy);
}

}  // namespace

MemoryPlan plan_memory(const FlatLayout& layout, const MemoryPlanInput& input) {
  MemoryPlan plan;
  add_parameters(plan, layout, input);
  plan.add(MemoryTier::device, MemoryCategory::activations, input.activations.device);
  plan.add(MemoryTier::host, MemoryCategory::activations, input.activations.host);
  if (!input.trains) return plan;
  add_update(plan, layout, input);
  add_save(plan, layout, input);
  return plan;
}

Bytes formula_bytes(const FormulaInput& input) {
  constexpr Bytes adam_states = 2;
  const StagePolicy policy = stage_policy(input.stage);
  const auto share = [&](Bytes bytes_each, bool sharded) {
    return input.psi * bytes_each / (sharded ? input.world : 1);
  };
  const Bytes states = adam_states + (input.dtype == DType::f32 ? 0 : 1);  // the master
  return share(size_of(input.dtype), policy.shard_parameters) +
         share(size_of(DType::f32), policy.shard_gradients) +
         share(states * size_of(DType::f32), policy.shard_optimizer);
}

std::string describe(const MemoryPlan& plan, Bytes formula) {
  std::string text = "memory per rank:";
  for (std::size_t tier = 0; tier < memory_tier_names.size(); ++tier) {
    const Bytes total = plan.total(static_cast<MemoryTier>(tier));
    if (total == 0) continue;
    text += fmt::format("{} {} {} (", tier == 0 ? "" : ";", memory_tier_names.at(tier),
                        format_bytes(total));
    const char* separator = "";
    for (std::size_t i = 0; i < memory_category_names.size(); ++i) {
      const Bytes bytes = plan.bytes.at(tier).at(i);
      if (bytes == 0) continue;
      text += fmt::format("{}{} {}", separator, memory_category_names.at(i), format_bytes(bytes));
      separator = ", ";
    }
    text += ")";
  }
  if (plan.save_copy == 0) return text;
  return text + fmt::format(
                    "; {} of the buffers from the first save on. Model states {}, the formula "
                    "gives {}",
                    format_bytes(plan.save_copy), format_bytes(plan.model_states()),
                    format_bytes(formula));
}

}  // namespace dstrain::zero
