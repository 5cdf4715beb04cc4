#include "runtime/engine/step_counts.h"

#include <algorithm>

#include "runtime/optim/schedule.h"

namespace dstrain::engine {

double StepRate::add(double seconds) {
  constexpr double memory = 8;
  seconds_ += (seconds - seconds_) / std::min(static_cast<double>(++steps_), memory);
  return seconds_;
}

StepCounts::StepCounts(const config::TrainSettings& settings, const TrainerState& state)
    : settings_(settings),
      overflow_({.loss_scale = settings.loss_scale,
                 .most_in_row = settings.max_skipped_steps,
                 .clips = settings.gradient_clipping > 0,
                 .scales = settings.dtype == DType::f16},
                state.overflow),
      updates_(state.updates),
      optimizer_step_(state.optimizer_step) {}

StepInput StepCounts::input(std::int64_t step, bool under_way) const {
  const std::int64_t ahead = under_way ? 2 : 1;
  const std::int64_t update = updates_ + ahead;
  return {.step = step,
          .update = {.number = optimizer_step_ + ahead,
                     .learning_rate = optim::learning_rate(settings_.schedule, update),
                     .betas = optim::scheduled_betas(settings_.schedule, update)},
          .micro_batches = {},
          .loss_scale = overflow_.loss_scale()};
}

void StepCounts::settle(std::int64_t step, const ops::StepDecision& decision) {
  overflow_.settle(step, decision);
  if (!decision.is_taken()) return;
  ++updates_;
  ++optimizer_step_;
}

void StepCounts::write(TrainerState& state) const {
  state.overflow = overflow_.state();
  state.updates = updates_;
  state.optimizer_step = optimizer_step_;
}

std::string find_overflow(Engine& engine, const model::Model& model, comm::ControlGroup& control) {
  const std::vector<model::ParameterSpec> parameters = model.parameters();
  const std::optional<std::string> own = engine.last_not_finite();
  const auto place = std::ranges::find(parameters, own, &model::ParameterSpec::name);
  const std::int64_t index = own ? place - parameters.begin() : -1;
  const std::int64_t last = std::ranges::max(control.gather(index));
  return last < 0 ? "" : parameters[static_cast<std::size_t>(last)].name;
}

}  // namespace dstrain::engine
