#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "launcher/plan/task_launcher.h"
#include "launcher/process/process.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Runs srun or mpirun as a child of this process, in its own session, and keeps the beginning and
/// the end of its output to explain a failure.
class TaskStarter {
 public:
  /// `env` comes on top of this process's. Throws Error{remote} when it cannot be started.
  TaskStarter(const TaskCommand& command,
              const std::vector<EnvVar>& env,
              const sigset_t& signal_mask);

  static constexpr std::size_t polls = 2;
  void add_polls(std::vector<pollfd>& fds) const;
  void advance(const pollfd* fds);

  [[nodiscard]] bool ended() const { return wait_status_.has_value(); }
  /// Its output: the first and last lines, without lines of dashes, because a cause may precede or
  /// follow a long explanation. Empty: none.
  [[nodiscard]] std::string output() const;
  /// Once it has ended: "srun (pid 12) ended with status 1: srun: error: ...".
  [[nodiscard]] std::string end_reason() const;
  /// Why its tasks are killed, if a task is not the cause: "srun (pid 12) was killed by SIGKILL",
  /// once it was, or "srun (pid 12) kills its tasks (srun: forcing job termination)", which it
  /// prints when it is asked to end. Else empty.
  [[nodiscard]] std::string kill_reason() const;
  void ask_to_end() const;

 private:
  void read_output();

  std::string name_;
  pid_t pid_ = 0;
  UniqueFd end_;
  UniqueFd output_;
  std::string first_output_;
  std::string last_output_;  ///< the end of the output after first_output_
  std::optional<int> wait_status_;
};

}  // namespace dstrain::launcher
