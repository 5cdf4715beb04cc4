#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/train_settings.h"
#include "runtime/engine/trainer_state.h"
#include "runtime/model/model.h"
#include "runtime/model/parameter_source.h"
#include "runtime/session/memory_fit.h"
#include "runtime/session/memory_setup.h"
#include "runtime/session/rank_session.h"
#include "runtime/session/run_data.h"

namespace dstrain::session {

/// All that a run over files decides before any rank starts.
struct RunSetup {
  config::TrainSettings settings;
  model::Model model;
  RunData data;
  MemorySetup memory;
  engine::TrainerState state;                                  ///< before its first step
  std::unique_ptr<model::ParameterSource> initial_parameters;  ///< null: a checkpoint has them
  /// What every rank of a run must have alike, a line each: options, configuration, model, data.
  std::vector<std::string> alike;
};

/// What a rank makes the session of the run from. All must outlive the session.
RankSession::Inputs session_inputs(const RunSetup& setup,
                                   JoinedRank& rank,
                                   const Remedies& remedies);

}  // namespace dstrain::session
