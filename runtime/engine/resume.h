#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/engine/run_check.h"
#include "runtime/engine/trainer_state.h"
#include "runtime/os/visibility.h"

namespace dstrain::engine {

/// Where to go on from.
struct ResumePlan {
  std::filesystem::path directory;   ///< of the checkpoints; a node's may be its own
  std::vector<std::string> names{};  ///< of the checkpoints there, the one to take first, first
  bool fall_back = false;            ///< when one is damaged, take the next
  checkpoint::Checkpoint::Files files = checkpoint::Checkpoint::Files::all;
  OtherData other_data = OtherData::refused;
  /// How long the other ranks are waited for until they see what rank 0 sees.
  double visible_seconds = dstrain::visible_seconds;
};

struct Resumed {
  TrainerState state;
  std::filesystem::path checkpoint;
};

/// What resume() works with; all must outlive the call.
struct ResumeInputs {
  const model::Model& model;
  ParameterStore& store;
  comm::ControlGroup& control;
};

/// Loads parameters and optimizer states from the first checkpoint of rank 0's plan that every rank
/// finds whole: each reads its own slices and shares in checking the files that nobody reads. Which
/// checkpoints there are rank 0 alone decides, as another host may not see them for a while; of
/// files that each node has for itself, each rank. What is damaged is told in one line by rank 0,
/// as are foreign files in the one that is taken. `run` is what the run is now: see read_run().
/// Collective. Throws Error{input} on every rank when nothing whole is left, or when a host, which
/// it names, still does not see what rank 0 sees; Error{config} for a run that cannot go on from
/// there, Error{newer_format} for a checkpoint of a newer dstrain.
Resumed resume(const ResumePlan& plan,
               const TrainerState& run,
               const ResumeInputs& inputs,
               StreamView stream);

}  // namespace dstrain::engine
