#pragma once
#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// --do_eval without --do_train: the loss of the model on the held-out data, in eval_results.json
/// and all_results.json, and as a line for people. Neither gradients nor optimizer states take
/// memory. Collective. Returns the exit status.
int evaluate_model(const TrainSetup& setup, session::JoinedRank& rank);

}  // namespace dstrain::cmd
