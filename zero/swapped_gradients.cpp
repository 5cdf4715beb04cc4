#include "zero/swapped_gradients.h"

#include <utility>

#include "runtime/base/error.h"
#include "zero/run_update.h"

namespace dstrain::zero {

void SwappedGradients::begin_step(const optim::StepScalars& foreseen) {
  DSTRAIN_CHECK(!early_, "step {} was begun early and not taken", foreseen_.step);
  foreseen_ = foreseen;
  early_ = mode_ == EarlyUpdate::irrevocable || (mode_ == EarlyUpdate::revocable && !clipped_);
}

bool SwappedGradients::end_step(const optim::StepScalars& scalars) {
  clipped_ = scalars.gradient_scale != 1;
  if (!std::exchange(early_, false) || scalars != foreseen_) return false;
  parts_.states.accept();
  return true;
}

void SwappedGradients::begin(engine::MicroStep micro_step) {
  parts_.states.begin(micro_step, early_);
}

void SwappedGradients::announce(int segment, engine::MicroStep micro_step) {
  if (!early_ || !micro_step.last()) return;
  // Waits for a buffer in the program's order, as gathers do: they need the same ones.
  const profile::Recording waiting(parts_.timeline, profile::Lane::compute,
                                   profile::Activity::wait);
  parts_.parameters.hold(segment, true);
}

void SwappedGradients::put(int segment, TensorView gradients) {
  parts_.states.put(
      segment, gradients,
      [this](const StateRun& run, const engine::StateLease& lease) { update(run, lease); },
      inline_);
  if (early_) parts_.parameters.write_back(segment);
}

void SwappedGradients::update(const StateRun& run, const engine::StateLease& lease) {
  const profile::Recording recording(parts_.timeline, profile::Lane::early_updates,
                                     profile::Activity::update, run.segment);
  update_run(run, lease, parts_.parameters.hold(run, true), parts_.optimizer, foreseen_, inline_);
}

void SwappedGradients::finish(int segment) {
  parts_.parameters.let_go(segment);
}

}  // namespace dstrain::zero
