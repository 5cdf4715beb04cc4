#include "runtime/optim/loss_scaler.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::optim {

LossScaler::LossScaler(const config::LossScaleSettings& settings)
    : settings_(settings), state_{.scale = settings.initial, .hysteresis = settings.hysteresis} {}

void LossScaler::restore(const State& state) {
  if (is_dynamic()) state_ = state;
}

bool LossScaler::is_exhausted() const {
  const bool halves = settings_.hysteresis == 1 || state_.hysteresis == 1;
  // Compares as DeepSpeed does: a scale that began below the minimum is never detected.
  return settings_.machine == Machine::zero && halves && state_.scale == settings_.least;
}

void LossScaler::update(bool overflow) {
  if (is_dynamic()) overflow ? shrink() : grow();
  ++state_.steps;
}

void LossScaler::shrink() {
  DSTRAIN_CHECK(!is_exhausted(), "a loss scale of {} cannot shrink", state_.scale);
  const bool waits = settings_.machine == Machine::zero && settings_.hysteresis != 1;
  if (waits && state_.hysteresis != 1) {
    --state_.hysteresis;
  } else {
    state_.scale = std::max(state_.scale / 2, settings_.least);
  }
  state_.last_overflow = state_.steps;
}

void LossScaler::grow() {
  if (settings_.consecutive_hysteresis) state_.hysteresis = settings_.hysteresis;
  const std::int64_t stable = state_.steps - state_.last_overflow - 1;
  if (stable <= 0 || stable % settings_.window != 0) return;
  state_.hysteresis = settings_.hysteresis;
  state_.scale *= 2;
}

}  // namespace dstrain::optim
