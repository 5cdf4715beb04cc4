#pragma once
#include <cstdint>

#include "runtime/config/loss_scale_settings.h"

namespace dstrain::optim {

/// The scale of the loss, which follows the steps that overflow. The same on every rank.
class LossScaler {
 public:
  /// The state that a checkpoint keeps.
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
  /// Whether the scale cannot shrink any more after a step that overflows.
  [[nodiscard]] bool is_exhausted() const;
  /// Call after each step, except one that overflows while the scale is exhausted.
  void update(bool overflow);

 private:
  using Machine = config::LossScaleSettings::Machine;
  void shrink();
  void grow();

  config::LossScaleSettings settings_;
  State state_;
};

}  // namespace dstrain::optim
