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

/// All that answer.
std::vector<FoundJob> find_jobs();

/// The one with this id, or else this output directory. Throws Error{usage} when there is none.
FoundJob find_job(const std::string& id_or_directory);

/// Sends "save" or "stop" and waits, without end, for the line that answers. None when the launcher
/// went away without one.
std::optional<std::string> ask_job(const FoundJob& job, const std::string& request);

}  // namespace dstrain::launcher
