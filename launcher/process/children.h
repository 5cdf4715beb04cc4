#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dstrain::launcher {

/// Between two looks for processes that became children while others were killed.
inline constexpr int new_orphans_milliseconds = 5;

/// Makes orphaned descendants children of this process instead of init's. Throws Error{io}.
void become_subreaper();

/// The children of this (single-threaded) process, zombies included. None can be mistaken for
/// another process before this one reaps it.
std::vector<pid_t> list_children();

/// Whether the environment the process was started with holds `entry` ("NAME=VALUE").
bool has_environment_entry(pid_t pid, const char* entry);

/// Waits until one of these children has ended, or so long. None is reaped; none may have been.
void wait_for_any_end(std::span<const pid_t> children, int milliseconds_max);

/// The processes that become children of the launcher when its agent dies. Processes that were its
/// children before (a shell may exec the launcher with jobs in the background) are never touched.
class JobChildren {
 public:
  using OnEnd = std::function<void(pid_t pid, int wait_status)>;

  /// Construct before the agent is started: present children do not belong to the job.
  explicit JobChildren(const std::string& job_id);

  /// A child that kill_all() leaves alone: it ends by itself.
  void exclude(pid_t pid) { excluded_.insert(pid); }

  /// Reaps all that have ended, and calls `on_end` for each.
  void reap(const OnEnd& on_end);
  /// Kills and reaps all that belong to the job; gives up on those that do not die.
  void kill_all(const OnEnd& on_end);

 private:
  [[nodiscard]] std::vector<pid_t> send_kill() const;

  std::set<pid_t> others_;
  std::set<pid_t> excluded_;
  std::string marker_;
};

}  // namespace dstrain::launcher
