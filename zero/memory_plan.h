#pragma once
#include <array>
#include <string>

#include "runtime/device/memory_resource.h"
#include "zero/flat_layout.h"
#include "zero/overlap.h"

namespace dstrain::zero {

/// The device memory that a rank of a training run takes at its peak, by what it is for. Everything
/// is allocated before step 0 from the same arithmetic, so the prediction is exact.
struct MemoryPlan {
  std::array<Bytes, memory_category_names.size()> bytes{};

  [[nodiscard]] Bytes of(MemoryCategory category) const {
    return bytes.at(static_cast<std::size_t>(category));
  }
  [[nodiscard]] Bytes total() const;
  /// Parameters, gradients and optimizer states: what the ZeRO stage divides.
  [[nodiscard]] Bytes model_states() const;
};

struct MemoryPlanInput {
  int stage = 0;
  std::int64_t reduce_bucket_numel = 0;
  Overlap overlap{};
  std::size_t optimizer_states = 2;  ///< of the optimizer itself, floats per parameter
  Bytes activations = 0;             ///< Engine::activation_bytes()
};

MemoryPlan plan_memory(const FlatLayout& layout, const MemoryPlanInput& input);

/// What the ZeRO paper's formula gives for the model states of a run; see StagePolicy.
struct FormulaInput {
  std::int64_t psi = 0;  ///< parameters
  DType dtype = DType::f32;
  int stage = 0;
  int world = 1;
};
Bytes formula_bytes(const FormulaInput& input);

/// The plan and the formula in one sentence, for people.
std::string describe(const MemoryPlan& plan, Bytes formula);

}  // namespace dstrain::zero
