#pragma once
#include "runtime/engine/resume.h"
#include "runtime/session/run_setup.h"

namespace dstrain::session {

/// Throws Error{usage} when --output_dir is or lies in a checkpoint, with which it would be
/// removed, or is so long that no path of a checkpoint fits.
void refuse_unfit_output(const config::TrainSettings& settings, int world_size);

/// The checkpoints that --resume_from_checkpoint means, the newest first; none when it was not
/// given. Throws Error{input} when there is nothing to go on from. On another rank than 0, whose
/// plan counts, there are none.
engine::ResumePlan plan_resume(const config::TrainSettings& settings, int rank = 0);

/// Finds before any rank starts what resuming would fail at: nothing whole to go on from, as far as
/// manifests tell, or another run; and checkpoints of another run in the output directory, which
/// would be taken for this one's. Throws Error{input, config, usage}.
void check_resume(const RunSetup& setup);

}  // namespace dstrain::session
