#pragma once
#include <cstdint>

#include "runtime/config/loss_scale_settings.h"

namespace dstrain::optim {

/// The factor of the loss, which changes with the steps that overflow. The same on every rank.
class LossScaler {
 public:
  /// Where it stands: what a checkpoint keeps of it.
  struct State {
    double scale = 1;
    std::int64_t steps = 0;           ///< seen so far
    std::int64_t last_overflow = -1;  ///< the number of that step, from 0
    std::int64_t hysteresis = 1;      ///< overflows until the scale is halved
    bool operator==(const State&) const = default;
  };
  explicit LossScaler(const config::LossScaleSettings& settings);

  [[nodiscard]] double scale() const { return state_.scale; }
  [[nodiscard]] const State& state() const { return state_; }
  void restore(const State& state);
  [[nodiscard]] bool is_dynamic() const {
    return settings_.machine != config::LossScaleSettings::Machine::fixed;
  }
  /// Whether a step that overflows cannot be answered by a smaller scale any more.
  [[nodiscard]] bool is_exhausted() const;
  /// After a step; not after one that overflows when the scale is exhausted.
  void update(bool overflow);

 private:
  using Machine = config::LossScaleSettings::Machine;
  void shrink();
  void grow();

  config::LossScaleSettings settings_;
  State state_;
};

}  // namespace dstrain::optim
