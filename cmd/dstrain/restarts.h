#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/job/launch.h"
#include "runtime/base/result.h"

namespace dstrain::cmd {

/// When to restart a job.
struct RestartPolicy {
  int fruitless_max = 0;  ///< restarts without a new checkpoint in between; 0: never again
  /// For training, the directory of its checkpoints, from which restarts resume. Empty: another
  /// program.
  std::filesystem::path output_directory;
  bool ignore_data_skip = false;  ///< of training: applies to a checkpoint that existed before
};

/// A launch to come.
struct NextLaunch {
  launcher::LaunchJob job;
  std::vector<std::string> idle;  ///< of an elastic job: slots and hosts without a rank
};

/// Makes the next launch of a job without the hosts that were just found absent, which only elastic
/// jobs have. A failure says why there can be none.
using MakeLaunch = std::function<Result<NextLaunch>(const std::vector<std::string>& absent)>;

/// Runs the job, and restarts it after each failure of a rank or a host as long as the policy
/// allows. Does not restart a job that succeeded, that the user stopped, or that would fail in the
/// same way (wrong usage or input, or a first launch that reached no rank). An elastic job contacts
/// all its hosts each time and continues on those that answer. Returns the last exit status.
int run_with_restarts(const MakeLaunch& make, const RestartPolicy& policy);

}  // namespace dstrain::cmd
