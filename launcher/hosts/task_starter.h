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

/// srun or mpirun as a child of this process, in a session of its own, with the beginning and the
/// end of what it prints: what it has to say when it fails.
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
  /// What it has printed: its first and its last lines, those of dashes left out, since a cause may
  /// stand before a long explanation or after it. Empty: nothing.
  [[nodiscard]] std::string output() const;
  /// Once it has ended: "srun (pid 12) ended with status 1: srun: error: ...".
  [[nodiscard]] std::string end_reason() const;
  /// Why its tasks are killed, where that is no task's doing: "srun (pid 12) was killed by
  /// SIGKILL", once it was, or "srun (pid 12) kills its tasks (srun: forcing job termination)", as
  /// it says when somebody has asked it to end. Else empty.
  [[nodiscard]] std::string kill_reason() const;
  void ask_to_end() const;

 private:
  void read_output();

  std::string name_;
  pid_t pid_ = 0;
  UniqueFd end_;
  UniqueFd output_;
  std::string first_output_;
  std::string last_output_;  ///< of what follows first_output_
  std::optional<int> wait_status_;
};

}  // namespace dstrain::launcher
