#include "zero/memory_plan.h"

#include <numeric>

#include "runtime/device/crossing_tier.h"
#include "runtime/engine/staged_shard.h"
#include "runtime/ops/library_memory.h"
#include "zero/offloaded_gradients.h"
#include "zero/parameter_gathers.h"
#include "zero/parameter_sums.h"
#include "zero/rank_shards.h"
#include "zero/saved_states.h"
#include "zero/sharded_gradients.h"
#include "zero/sub_group_updates.h"
#include "zero/whole_gradients.h"

namespace dstrain::zero {

Bytes MemoryPlan::total(MemoryTier tier) const {
  const CategoryBytes& categories = bytes.at(static_cast<std::size_t>(tier));
  return std::accumulate(categories.begin(), categories.end(), Bytes{0});
}

Bytes MemoryPlan::machine_total() const {
  const Bytes host = total(MemoryTier::host) + total(MemoryTier::pinned);
  return host + (shares_host_memory(device) ? total() : 0);
}

Bytes MemoryPlan::model_states() const {
  Bytes sum = 0;
  for (const CategoryBytes& tier : bytes) {
    for (const auto category :
         {MemoryCategory::parameters, MemoryCategory::gradients, MemoryCategory::optimizer}) {
      sum += dstrain::of(tier, category);
    }
  }
  return sum;
}

namespace {

ShardPlan plan_shards(const FlatLayout& layout, const MemoryPlanInput& input) {
  return {layout,
          {.stage = input.stage,
           .optimizer_states = std::ssize(input.optimizer_states),
           .precision = input.precision,
           .trains = input.trains,
           .offload = input.offload}};
}

void add(MemoryPlan& plan, MemoryTier tier, const CategoryBytes& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    plan.add(tier, static_cast<MemoryCategory>(i), bytes.at(i));
  }
}

/// Parameters, gradients and states in their tiers, and what moves them between these.
void add_shards(MemoryPlan& plan,
                const FlatLayout& layout,
                const ShardPlan& shards,
                const MemoryPlanInput& input) {
  for (const MemoryTier tier : {MemoryTier::device, MemoryTier::host, MemoryTier::pinned}) {
    add(plan, tier, ResidentShards::bytes(layout, shards, tier));
  }
  add(plan, MemoryTier::nvme, DiskShards::file_bytes(layout, shards, input.offload));
  plan.add(input.offload.staging, MemoryCategory::buffers,
           DiskShards::buffer_bytes(layout, shards, input.offload) +
               RankShards::staging_bytes(layout, shards, input.device) +
               OffloadedGradients::staging_bytes(shards, input.device));
  plan.add(MemoryTier::device, MemoryCategory::buffers,
           ParameterGathers::buffer_bytes(layout, shards, input.overlap));
}

/// Sums over parameters.
void add_sums(MemoryPlan& plan,
              const FlatLayout& layout,
              const ShardPlan& shards,
              const MemoryPlanInput& input) {
  const Bytes bytes = ParameterSums::bytes(layout, input.optimizer_sums);
  plan.add(MemoryTier::device, MemoryCategory::buffers, bytes);
  if (!ParameterSums::needs_host(shards, input.device)) return;
  plan.add(input.offload.staging, MemoryCategory::buffers, bytes);
}

/// The f32 workspace for states that are kept in 16 bits.
void add_workspace(MemoryPlan& plan, const ShardPlan& shards, const MemoryPlanInput& input) {
  plan.add(MemoryTier::device, MemoryCategory::buffers, SubGroupUpdates::bytes(shards, false));
  plan.add(input.offload.staging, MemoryCategory::buffers, SubGroupUpdates::bytes(shards, true));
}

/// The memory that backward writes gradients into.
void add_whole_gradients(MemoryPlan& plan, const FlatLayout& layout, const MemoryPlanInput& input) {
  const bool sharded = stage_policy(input.stage).shard_gradients;
  const ShardedGradients::Options buckets{input.reduce_bucket_numel, input.overlap.enabled};
  plan.add(MemoryTier::device, MemoryCategory::buffers,
           sharded ? ShardedGradients::buffer_bytes(layout, buckets, input.precision)
                   : WholeGradients::buffer_bytes(layout, input.precision));
  if (sharded) return;
  plan.add(MemoryTier::device, MemoryCategory::gradients,
           WholeGradients::bytes(layout, input.precision.gradients));
}

/// The copy that a save writes.
void add_save(MemoryPlan& plan, const FlatLayout& layout, const MemoryPlanInput& input) {
  plan.save_copy =
      engine::StagedShard(saved_states(input.optimizer_states, layout.dtype(), input.precision),
                          saved_slices(layout, 0))
          .bytes();
  const bool to_disk = input.offload.optimizer == MemoryTier::nvme;
  plan.add(to_disk ? MemoryTier::nvme : MemoryTier::host, MemoryCategory::buffers, plan.save_copy);
}

}  // namespace

MemoryPlan plan_memory(const FlatLayout& layout, const MemoryPlanInput& input) {
  MemoryPlan plan;
  plan.device = input.device;
  const ShardPlan shards = plan_shards(layout, input);
  add_shards(plan, layout, shards, input);
  plan.add(MemoryTier::device, MemoryCategory::activations, input.activations.device);
  plan.add(crossing_tier(input.device), MemoryCategory::activations, input.activations.host);
  if (!input.trains) return plan;
  add_whole_gradients(plan, layout, input);
  add_sums(plan, layout, shards, input);
  add_workspace(plan, shards, input);
  add_save(plan, layout, input);
  return plan;
}

Bytes formula_bytes(const FormulaInput& input) {
  const StagePolicy policy = stage_policy(input.stage);
  const auto share = [&](Bytes bytes_each, bool sharded) {
    return input.psi * bytes_each / (sharded ? input.world : 1);
  };
  const config::StatePrecision& precision = input.precision;
  const Bytes master = precision.masters == input.dtype ? 0 : size_of(precision.masters);
  const Bytes states = input.optimizer_states * size_of(precision.optimizer_states);
  return share(size_of(input.dtype), policy.shard_parameters) +
         share(size_of(precision.gradients), policy.shard_gradients) +
         share(states + master, policy.shard_optimizer);
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
  if (plan.save_copy > 0) {
    const std::string states = format_bytes(plan.model_states());
    const std::string paper = format_bytes(formula);
    text += fmt::format("; {} of the buffers from the first save on. Model states take {}{}",
                        format_bytes(plan.save_copy), states,
                        states == paper ? "" : fmt::format(" ({} by the ZeRO paper)", paper));
  }
  return text + fmt::format(". Libraries take more: {}", ops::library_memory(plan.device));
}

}  // namespace dstrain::zero
