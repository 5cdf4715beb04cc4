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

/// The checkpoints to resume from.
struct ResumePlan {
  std::filesystem::path directory;   ///< of the checkpoints; each node may have its own
  std::vector<std::string> names{};  ///< of the checkpoints there, in order of preference
  bool fall_back = false;            ///< if one is damaged, take the next
  checkpoint::Checkpoint::Files files = checkpoint::Checkpoint::Files::all;
  OtherData other_data = OtherData::refused;
  /// How long to wait until the other ranks see the files that rank 0 sees.
  double visible_seconds = dstrain::visible_seconds;
};

struct Resumed {
  TrainerState state;
  std::filesystem::path checkpoint;
};

/// The objects that resume() uses; all must outlive the call.
struct ResumeInputs {
  const model::Model& model;
  ParameterStore& store;
  comm::ControlGroup& control;
};

/// Loads parameters and optimizer states from the first checkpoint of rank 0's plan that every rank
/// finds whole. Each rank reads its own slices and checks a share of the files that nobody reads.
/// Rank 0 alone decides which checkpoints exist, because another host may not see them for a while;
/// if each node has its own files, each rank decides. Rank 0 reports damaged checkpoints in one
/// line, and foreign files in the one that is taken. `run` describes the run as it is now: see
/// read_run(). Collective. Throws Error{input} on every rank if no whole checkpoint is left, or if
/// a host, which it names, still does not see the files that rank 0 sees; Error{config} for a run
/// that cannot go on from there; Error{newer_format} for a checkpoint of a newer dstrain.
Resumed resume(const ResumePlan& plan,
               const TrainerState& run,
               const ResumeInputs& inputs,
               StreamView stream);

}  // namespace dstrain::engine
