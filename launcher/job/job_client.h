#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job/job_directory.h"

namespace dstrain::launcher {

/// A running job of this user.
struct FoundJob {
  std::string id;
  std::string status;                             ///< status_json() of the launcher
  std::shared_ptr<const JobDirectory> directory;  ///< several jobs lie in one
};

/// A job whose launcher did not answer in time, and why: "its launcher (pid 17) is stopped".
struct SilentJob {
  std::string id;
  std::string reason;
};

struct FoundJobs {
  std::vector<FoundJob> answering;
  std::vector<SilentJob> silent;
};

/// Finds all jobs of this user.
FoundJobs find_jobs();

/// Finds the job with this id, or else with this output directory. Throws Error{usage} when there
/// is none, or more than one in the directory, and Error{aborted} when it may be a silent one.
FoundJob find_job(const std::string& id_or_directory);

/// Sends "save" or "stop" and waits, without end, for the line that answers. None when the launcher
/// went away without one.
std::optional<std::string> ask_job(const FoundJob& job, const std::string& request);

}  // namespace dstrain::launcher
