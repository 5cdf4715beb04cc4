#pragma once
#include <array>
#include <csignal>
#include <optional>
#include <span>
#include <vector>

#include <sys/types.h>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// A signal that arrived, and the process it is about or came from. Of several SIGCHLD the kernel
/// keeps the first: `pid` is the child that ended first.
struct ArrivedSignal {
  int number = 0;
  pid_t pid = 0;
};

/// Blocks signals for this thread and gives them out one by one; a poll loop waits on fd().
/// The mask of before is kept for children and restored at the end.
class SignalSource {
 public:
  explicit SignalSource(std::span<const int> signals);
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;
  SignalSource(SignalSource&&) = delete;
  SignalSource& operator=(SignalSource&&) = delete;
  ~SignalSource();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const sigset_t& previous_mask() const { return previous_; }
  /// The next signal that has arrived, without waiting.
  std::optional<ArrivedSignal> next();

 private:
  sigset_t previous_{};
  UniqueFd fd_;
};

/// Each of them asks a job to stop.
inline constexpr std::array<int, 4> stop_signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// The signals that a launcher and an agent handle: SIGCHLD, and those that ask it to stop. An
/// ignored SIGHUP (nohup) stays ignored.
std::vector<int> job_signals();

/// Gives the stop signals another effect, SIG_IGN or SIG_DFL, of this process and of programs that
/// it becomes. Async-signal-safe.
void set_stop_signals(sighandler_t effect);

/// Undoes what a parent may have handed down: an ignored SIGCHLD, which would hide the ends of
/// children, and blocked signals, which started programs would inherit. Ignored stop signals stay
/// (nohup).
void reset_inherited_signals();

/// Makes a write to a closed pipe fail with EPIPE instead of ending this process.
void ignore_broken_pipes();

/// Opens /dev/null in place of stdin, stdout and stderr where they are closed, so that no file
/// opened later takes their numbers.
void fill_standard_streams();

}  // namespace dstrain::launcher
