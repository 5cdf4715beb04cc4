#pragma once
#include <cstdint>
#include <string>

#include "runtime/comm/control/control_group.h"
#include "runtime/config/train_settings.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/overflow_policy.h"
#include "runtime/engine/trainer_state.h"

namespace dstrain::engine {

/// The seconds of a step, averaged over the last ones.
class StepRate {
 public:
  /// Takes the seconds of one more step. Returns the average.
  double add(double seconds);

 private:
  std::int64_t steps_ = 0;
  double seconds_ = 0;
};

/// What a run's optimizer steps depend on and change besides tensors: the learning rate's place in
/// its schedule, the optimizer's count and the loss scale. All loops over steps use it.
class StepCounts {
 public:
  /// Continues from `state`.
  StepCounts(const config::TrainSettings& settings, const TrainerState& state);

  /// Returns the input of step `step`, without batches and labels. `under_way`: the step before is
  /// not settled yet, and counts as taken.
  [[nodiscard]] StepInput input(std::int64_t step, bool under_way = false) const;
  /// Whether the input of a step depends on whether the step before was taken.
  [[nodiscard]] bool waits() const { return overflow_.skips(); }
  /// Notes the decision on a step. Throws Error{diverged} on every rank if the run cannot go on.
  void settle(std::int64_t step, const ops::StepDecision& decision);

  [[nodiscard]] const OverflowPolicy& overflow() const { return overflow_; }
  /// Writes the counts to the state of a checkpoint.
  void write(TrainerState& state) const;

 private:
  const config::TrainSettings& settings_;
  OverflowPolicy overflow_;
  std::int64_t updates_ = 0;
  std::int64_t optimizer_step_ = 0;
};

/// Returns the parameter where backward began to overflow, on any rank, in a step that was not
/// taken; empty: not known. Collective.
std::string find_overflow(Engine& engine, const model::Model& model, comm::ControlGroup& control);

}  // namespace dstrain::engine
