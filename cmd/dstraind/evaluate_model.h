#pragma once
#include <cstdint>
#include <vector>

#include "cmd/train_setup.h"
#include "runtime/data/choice_questions.h"
#include "runtime/engine/evaluation.h"

namespace dstrain::cmd {

/// --do_eval without --do_train: the loss of the model on the held-out data, in eval_results.json
/// and all_results.json, and as a line for people. Neither gradients nor optimizer states take
/// memory. Collective. Returns the exit status.
int evaluate_model(const TrainSetup& setup, session::JoinedRank& rank);

/// An evaluation, the same on every rank but for its time.
template <class T>
struct Evaluated {
  T result;
  double seconds = 0;  ///< without loading
};

/// Returns the losses of the model on the held-out data. `text_bytes`: by token; empty: not known.
/// Logs the progress now and then. Collective.
Evaluated<engine::Losses> measure_losses(const TrainSetup& setup,
                                         session::JoinedRank& rank,
                                         std::span<const std::int32_t> text_bytes);

/// Answers the questions. Likewise. Throws Error{diverged} on every rank if a likelihood is not
/// finite.
Evaluated<data::ChoiceScores> measure_choices(const TrainSetup& setup, session::JoinedRank& rank);

}  // namespace dstrain::cmd
