#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/state_precision.h"
#include "runtime/device/memory_resource.h"
#include "runtime/engine/frame.h"
#include "zero/flat_layout.h"
#include "zero/offload.h"
#include "zero/overlap.h"

namespace dstrain::zero {

/// The memory that a rank of a training run takes at its peak, by tier and by what it is for. The
/// arithmetic is that of the allocations, so the prediction is exact, and it is the same on a
/// machine without the device. All of it is allocated before step 0, but for `save_copy`.
struct MemoryPlan {
  TierBytes bytes{};
  /// The copy that a save writes, from the first one on, which may be one on request: of the host's
  /// buffers, or of the disk's when the states lie there.
  Bytes save_copy = 0;
  DeviceKind device = DeviceKind::cpu;  ///< whose libraries take more; see ops::library_memory()

  [[nodiscard]] Bytes of(MemoryTier tier, MemoryCategory category) const {
    return dstrain::of(bytes.at(static_cast<std::size_t>(tier)), category);
  }
  void add(MemoryTier tier, MemoryCategory category, Bytes more) {
    dstrain::of(bytes.at(static_cast<std::size_t>(tier)), category) += more;
  }
  [[nodiscard]] Bytes of(MemoryCategory category) const { return of(MemoryTier::device, category); }
  [[nodiscard]] Bytes total(MemoryTier tier = MemoryTier::device) const;
  /// What it takes of the machine's memory: the host's, and the device's where that is the same.
  [[nodiscard]] Bytes machine_total() const;
  /// Parameters, gradients and optimizer states on all tiers: what the ZeRO stage divides.
  [[nodiscard]] Bytes model_states() const;
};

struct MemoryPlanInput {
  int stage = 0;
  std::int64_t reduce_bucket_numel = 0;
  Overlap overlap{};
  Offload offload{};
  config::StatePrecision precision{};
  DeviceKind device = DeviceKind::cpu;  ///< as Model::device
  /// Of the optimizer itself, one value per parameter each.
  std::vector<std::string_view> optimizer_states{"exp_avg", "exp_avg_sq"};
  std::int64_t optimizer_sums = 0;  ///< of the optimizer itself, over each parameter
  bool trains = true;               ///< false: the parameters are only served, and nothing is saved
  engine::FrameBytes activations{};  ///< Engine::activation_bytes()
};

MemoryPlan plan_memory(const FlatLayout& layout, const MemoryPlanInput& input);

/// What the ZeRO paper's formula gives for the model states of a run; see StagePolicy.
struct FormulaInput {
  std::int64_t psi = 0;  ///< parameters
  DType dtype = DType::f32;
  int stage = 0;
  int world = 1;
  std::int64_t optimizer_states = 2;  ///< values per parameter
  config::StatePrecision precision{};
};
Bytes formula_bytes(const FormulaInput& input);

/// The plan, the formula and what is outside of both, for people.
std::string describe(const MemoryPlan& plan, Bytes formula);

}  // namespace dstrain::zero
