#pragma once
#include "cmd/train_setup.h"
#include "runtime/rank/progress_page.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {

/// --do_eval without --do_train: the loss of the model on the held-out data, in eval_results.json
/// and all_results.json, and as a line for people. Neither gradients nor optimizer states take
/// memory. Publishes in `progress` where it is. Collective. Returns
/// the exit status.
int evaluate_model(TrainSetup& setup, const WorkerEnv& worker, ProgressPage& progress);

}  // namespace dstrain::cmd
