#pragma once
#include <functional>
#include <set>
#include <string>

#include <sys/types.h>

namespace dstrain::launcher {

/// The processes that become children of the launcher when its agent dies. Processes that were its
/// children before (a shell may exec the launcher with jobs in the background) are never touched.
class JobChildren {
 public:
  using OnEnd = std::function<void(pid_t pid, int wait_status)>;

  /// Construct before the agent is started: whatever is a child now is not of the job.
  explicit JobChildren(const std::string& job_id);

  /// A child that sweep() leaves alone: it ends by itself.
  void spare(pid_t pid) { spared_.insert(pid); }

  /// Reaps all that have ended, and calls `on_end` for each.
  void reap(const OnEnd& on_end);
  /// Kills and reaps all that belong to the job; gives up on those that do not die.
  void sweep(const OnEnd& on_end);

 private:
  std::size_t kill_all() const;

  std::set<pid_t> others_;
  std::set<pid_t> spared_;
  std::string marker_;
};

}  // namespace dstrain::launcher
