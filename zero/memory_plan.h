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

/// The peak memory of a rank of a training run, by tier and category. It is computed by the same
/// code as the allocations, so the prediction is exact, also on a machine without the device.
/// Everything but `save_copy` is allocated before step 0.
struct MemoryPlan {
  TierBytes bytes{};
  /// The copy that a save writes, allocated by the first save: in the host's buffers, or in the
  /// disk's if the states are there.
  Bytes save_copy = 0;
  DeviceKind device = DeviceKind::cpu;  ///< its libraries take more; see ops::library_memory()

  [[nodiscard]] Bytes of(MemoryTier tier, MemoryCategory category) const {
    return dstrain::of(bytes.at(static_cast<std::size_t>(tier)), category);
  }
  void add(MemoryTier tier, MemoryCategory category, Bytes more) {
    dstrain::of(bytes.at(static_cast<std::size_t>(tier)), category) += more;
  }
  [[nodiscard]] Bytes of(MemoryCategory category) const { return of(MemoryTier::device, category); }
  [[nodiscard]] Bytes total(MemoryTier tier = MemoryTier::device) const;
  /// Bytes of the machine's memory: the host's, and the device's if that is the same.
  [[nodiscard]] Bytes machine_total() const;
  /// Bytes of parameters, gradients and optimizer states on all tiers, which the ZeRO stage
  /// divides.
  [[nodiscard]] Bytes model_states() const;
};

struct MemoryPlanInput {
  int stage = 0;
  std::int64_t reduce_bucket_numel = 0;
  Overlap overlap{};
  Offload offload{};
  config::StatePrecision precision{};
  DeviceKind device = DeviceKind::cpu;  ///< as Model::device
  /// States of the optimizer itself, each with one value per parameter.
  std::vector<std::string_view> optimizer_states{"exp_avg", "exp_avg_sq"};
  std::int64_t optimizer_sums = 0;   ///< over each parameter, that the optimizer needs
  bool trains = true;                ///< false: the parameters are only served, nothing is saved
  engine::FrameBytes activations{};  ///< Engine::activation_bytes()
};

MemoryPlan plan_memory(const FlatLayout& layout, const MemoryPlanInput& input);

/// Input of the ZeRO paper's formula for the model states of a run; see StagePolicy.
struct FormulaInput {
  std::int64_t psi = 0;  ///< parameters
  DType dtype = DType::f32;
  int stage = 0;
  int world = 1;
  std::int64_t optimizer_states = 2;  ///< values per parameter
  config::StatePrecision precision{};
};
Bytes formula_bytes(const FormulaInput& input);

/// Text of the plan, the formula and the memory that neither counts.
std::string describe(const MemoryPlan& plan, Bytes formula);

}  // namespace dstrain::zero
