#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/ops/decide_step.h"
#include "runtime/optim/loss_scaler.h"

namespace dstrain::engine {

/// Decides what follows a step that was not taken because its loss or gradients are not finite:
/// skip it, lower the loss scale, or end the run. Decides the same on all ranks.
class OverflowPolicy {
 public:
  struct Options {
    config::LossScaleSettings loss_scale{};
    std::int64_t most_in_row = 0;  ///< steps that may be skipped in a row; 0: none
    bool clips = false;            ///< gradients are clipped; for advice
    bool scales = false;           ///< the loss is scaled; for advice
  };
  /// The state that a checkpoint keeps.
  struct State {
    std::int64_t skipped_steps = 0;   ///< steps that were not taken
    std::int64_t skipped_in_row = 0;  ///< of these, since the last one that was taken
    std::optional<optim::LossScaler::State> loss_scaler{};  ///< none: the scale is fixed
  };
  /// Continues from `state`.
  OverflowPolicy(const Options& options, const State& state);

  /// Whether the next step depends on whether this one is taken.
  [[nodiscard]] bool skips() const { return options_.most_in_row > 0; }
  [[nodiscard]] double loss_scale() const { return scaler_.scale(); }
  [[nodiscard]] State state() const;
  /// Notes the decision on a step. Throws Error{diverged} on every rank if the run cannot go on.
  void settle(std::int64_t step, const ops::StepDecision& decision);
  /// Describes the step that was skipped last. `parameter` had gradients that are not finite;
  /// empty: not known.
  [[nodiscard]] std::string describe_skip(std::int64_t step,
                                          const ops::StepDecision& decision,
                                          const std::string& parameter) const;

 private:
  [[nodiscard]] std::string advice(const ops::StepDecision& decision) const;

  Options options_;
  optim::LossScaler scaler_;
  optim::LossScaler::State before_{};  ///< the scaler before the last skipped step
  State state_;                        ///< without the scaler's
};

}  // namespace dstrain::engine
