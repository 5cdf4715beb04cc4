#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/resolve.h"
#include "runtime/config/train_settings.h"
#include "runtime/engine/trainer_state.h"
#include "runtime/model/model.h"
#include "runtime/model/parameter_source.h"
#include "runtime/session/memory_fit.h"
#include "runtime/session/memory_setup.h"
#include "runtime/session/rank_session.h"
#include "runtime/session/run_data.h"

namespace dstrain::session {

/// All that a run decides before anything is allocated.
struct RunSetup {
  config::TrainSettings settings;
  model::Model model;
  RunData data;  ///< of a run over files
  MemorySetup memory;
  engine::TrainerState state;                                  ///< before its first step
  std::unique_ptr<model::ParameterSource> initial_parameters;  ///< null: a checkpoint has them
  /// What every rank of a run must have alike, a line each: options, configuration, model, data.
  std::vector<std::string> alike;
};

/// What every rank of a run must have alike besides its data, a line each: the effective
/// configuration, the device and the model.
std::vector<std::string> describe_alike(const std::vector<config::EffectiveValue>& effective,
                                        const model::Model& model);

/// What a rank makes the session of the run from; `remedies` until then, the others must outlive
/// the session. `others`: device memory, by the plans of other sessions of the rank.
RankSession::Inputs session_inputs(const RunSetup& setup,
                                   JoinedRank& rank,
                                   const Remedies& remedies,
                                   Bytes others = 0);

}  // namespace dstrain::session
