#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/ops/decide_step.h"
#include "runtime/optim/loss_scaler.h"

namespace dstrain::engine {

/// What follows from a step whose loss or gradients are not finite, and so was not taken: it is
/// left out, the loss is scaled less, or the run ends. Decided by what all ranks know alike.
class OverflowPolicy {
 public:
  struct Options {
    config::LossScaleSettings loss_scale{};
    std::int64_t most_in_row = 0;  ///< steps that are left out one after another; 0: none is
    bool clips = false;            ///< gradients; for advice
    bool scales = false;           ///< the loss; likewise
  };
  /// Where it stands: what a checkpoint keeps of it.
  struct State {
    std::int64_t skipped_steps = 0;   ///< batches of steps that were not taken
    std::int64_t skipped_in_row = 0;  ///< of these, since the last one that was taken
    std::optional<optim::LossScaler::State> loss_scaler{};  ///< nothing: none that changes
  };
  /// Goes on from `state`.
  OverflowPolicy(const Options& options, const State& state);

  /// Whether the next step depends on whether this one is taken.
  [[nodiscard]] bool skips() const { return options_.most_in_row > 0; }
  [[nodiscard]] double loss_scale() const { return scaler_.scale(); }
  [[nodiscard]] State state() const;
  /// Takes in what was decided on a step. Throws Error{diverged} on every rank when the run cannot
  /// go on.
  void settle(std::int64_t step, const ops::StepDecision& decision);
  /// Of the step that was left out last, in which these gradients were not finite (empty: not
  /// known).
  [[nodiscard]] std::string describe_skip(std::int64_t step,
                                          const ops::StepDecision& decision,
                                          const std::string& parameter) const;

 private:
  [[nodiscard]] std::string advice(const ops::StepDecision& decision) const;

  Options options_;
  optim::LossScaler scaler_;
  optim::LossScaler::State before_{};  ///< the last step that was left out
  State state_;                        ///< but for the scaler's
};

}  // namespace dstrain::engine
