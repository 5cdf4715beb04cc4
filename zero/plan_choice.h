#pragma once
#include <span>
#include <vector>

#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// What can be chosen about a training run to make it fit: the axes of `dstrain plan`.
struct PlanChoice {
  int stage = 0;
  MemoryTier optimizer = MemoryTier::device;   ///< device, host or nvme; see Offload
  MemoryTier parameters = MemoryTier::device;  ///< likewise
  bool checkpointing = false;                  ///< activations are computed again in the backward
  /// Stage 3 without persistent parameters and without overlap, so that there is one bucket and one
  /// gather buffer. Buckets hold no more than a unit unless a configuration asks for more.
  bool lean = false;
  bool operator==(const PlanChoice&) const = default;
};

/// All of them that the stages allow, plainest first: the optimizer's states are offloaded from
/// stage 1 on, parameters at stage 3. `tiers`: where things may lie, the device among them.
std::vector<PlanChoice> plan_choices(std::span<const MemoryTier> tiers);

}  // namespace dstrain::zero
