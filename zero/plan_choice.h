#pragma once
#include <span>
#include <vector>

#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// One combination of the options that `dstrain plan` tries to make a training run fit.
struct PlanChoice {
  int stage = 0;
  MemoryTier optimizer = MemoryTier::device;   ///< device, host or nvme; see Offload
  MemoryTier parameters = MemoryTier::device;  ///< likewise
  bool checkpointing = false;                  ///< backward recomputes activations
  /// Stage 3 without persistent parameters and without overlap, so that there is one bucket and one
  /// gather buffer. Buckets hold no more than a unit unless a configuration asks for more.
  bool lean = false;
  bool operator==(const PlanChoice&) const = default;
};

/// All combinations that the stages allow, plainest first. Optimizer states can be offloaded from
/// stage 1 on, parameters at stage 3. `tiers`: those that may be used, including the device.
std::vector<PlanChoice> plan_choices(std::span<const MemoryTier> tiers);

}  // namespace dstrain::zero
