#pragma once
#include <filesystem>

#include "launcher/job/launch.h"

namespace dstrain::cmd {

/// What --max_restarts says of a job.
struct RestartPolicy {
  int fruitless_max = 0;  ///< restarts without a new checkpoint in between; 0: never again
  /// Of training: where its checkpoints appear, which later runs go on from. Empty: another
  /// program.
  std::filesystem::path output_directory;
};

/// Runs the job, and again after each failure of a rank or a host for as long as the policy allows.
/// Not again: what ended as it should, what the user stopped, and what would fail in the same way
/// (wrong usage or input, or a first launch that reached no rank). Returns the last exit status.
int run_with_restarts(launcher::LaunchJob job, const RestartPolicy& policy);

}  // namespace dstrain::cmd
