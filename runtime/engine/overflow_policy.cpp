#include "runtime/engine/overflow_policy.h"

#include <cmath>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

std::string describe(std::int64_t step, const ops::StepDecision& decision) {
  return fmt::format("step {}: the loss is {} and the gradient norm is {}; the step was not taken",
                     step, decision.loss, decision.gradient_norm);
}

}  // namespace

OverflowPolicy::OverflowPolicy(const Options& options, const State& state)
    : options_(options), scaler_(options.loss_scale), state_(state) {
  if (state.loss_scaler) scaler_.restore(*state.loss_scaler);
}

void OverflowPolicy::settle(std::int64_t step, const ops::StepDecision& decision) {
  if (decision.is_taken()) {
    state_.skipped_in_row = 0;
    scaler_.update(false);
    return;
  }
  if (!skips()) fail(ErrorCode::diverged, "{}. {}", describe(step, decision), advice(decision));
  if (scaler_.is_exhausted()) {
    fail(ErrorCode::diverged, "{}. {}", describe(step, decision), advice(decision));
  }
  if (state_.skipped_in_row == options_.most_in_row) {
    fail(ErrorCode::diverged,
         "{}, after {} others in a row. {}; --max_skipped_steps lets more go by",
         describe(step, decision), state_.skipped_in_row, advice(decision));
  }
  before_ = scaler_.state();
  scaler_.update(true);
  ++state_.skipped_in_row;
  ++state_.skipped_steps;
}

std::string OverflowPolicy::advice(const ops::StepDecision& decision) const {
  if (options_.scales && !std::isfinite(decision.loss)) {
    return "The loss is not finite before it is scaled, so no loss scale helps: values of the "
           "forward pass exceed fp16's 65504. Use bf16 or fp32; if it was finite at first, lower "
           "the learning rate";
  }
  if (scaler_.is_exhausted()) {
    return fmt::format(
        "The loss scale is at its minimum, {}, and cannot shrink any more. Use bf16, which needs "
        "none, lower the learning rate, or set fp16.min_loss_scale lower",
        scaler_.scale());
  }
  if (options_.scales) {
    return "Lower fp16.loss_scale or fp16.initial_scale_power; if it was small, the learning rate";
  }
  return fmt::format("Lower the learning rate, lengthen the warmup or clip gradients{}",
                     options_.clips ? " to a smaller norm" : "");
}

OverflowPolicy::State OverflowPolicy::state() const {
  State state = state_;
  state.loss_scaler = std::nullopt;
  if (scaler_.is_dynamic()) state.loss_scaler = scaler_.state();
  return state;
}

std::string OverflowPolicy::describe_skip(std::int64_t step,
                                          const ops::StepDecision& decision,
                                          const std::string& parameter) const {
  std::string text = fmt::format("step {}: OVERFLOW! ", step);
  if (!std::isfinite(decision.loss)) {
    text += fmt::format("the loss is {} before it is scaled", decision.loss);
  } else {
    text += fmt::format("gradients{}{} are not finite", parameter.empty() ? "" : " of ", parameter);
  }
  text += ": the step is left out";
  if (!scaler_.is_dynamic()) {
    return text +
           fmt::format(", {} in a row of at most {}", state_.skipped_in_row, options_.most_in_row);
  }
  if (scaler_.scale() != before_.scale) {
    return text +
           fmt::format("; the loss scale is {} now, and was {}", scaler_.scale(), before_.scale);
  }
  return text + fmt::format("; the loss scale stays {}, hysteresis is {}", scaler_.scale(),
                            scaler_.state().hysteresis);
}

}  // namespace dstrain::engine
