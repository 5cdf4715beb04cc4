#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/job/launch.h"
#include "runtime/base/result.h"

namespace dstrain::cmd {

/// What --max_restarts says of a job.
struct RestartPolicy {
  int fruitless_max = 0;  ///< restarts without a new checkpoint in between; 0: never again
  /// Of training: where its checkpoints appear, which later runs go on from. Empty: another
  /// program.
  std::filesystem::path output_directory;
  bool ignore_data_skip = false;  ///< of training: said of a checkpoint that was there before
};

/// A launch to come.
struct NextLaunch {
  launcher::LaunchJob job;
  std::vector<std::string> idle;  ///< of an elastic job: slots and hosts without a rank
};

/// Makes the next launch of a job without the hosts that were found absent just now: there are
/// some of an elastic job alone. A failure says why there can be none.
using MakeLaunch = std::function<Result<NextLaunch>(const std::vector<std::string>& absent)>;

/// Runs the job, and again after each failure of a rank or a host for as long as the policy allows.
/// Not again: what ended as it should, what the user stopped, and what would fail in the same way
/// (wrong usage or input, or a first launch that reached no rank). An elastic job asks all its
/// hosts each time, and goes on with those that come. Returns the last exit status.
int run_with_restarts(const MakeLaunch& make, const RestartPolicy& policy);

}  // namespace dstrain::cmd
