#pragma once
#include <cerrno>
#include <csignal>
#include <functional>
#include <random>
#include <vector>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/socket.h"

namespace dstrain::test {

/// What may take longer hangs: no test asserts on time, and a machine may be busy.
constexpr double hang_seconds = 300;

/// Waits for the end of a process; false when the deadline passes first.
inline bool wait_for_end(pid_t pid, Deadline deadline) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process && errno == ESRCH) return true;
  if (!process) fail_errno(errno, "pidfd_open");
  return wait_until_ready(process.get(), POLLIN, deadline);
}

/// Waits until `living` names nobody: whenever one of those has ended it is asked again.
inline bool wait_until_none(const std::function<std::vector<pid_t>()>& living,
                            double seconds = hang_seconds) {
  const Deadline deadline = Deadline::after(seconds);
  for (std::vector<pid_t> left = living(); !left.empty(); left = living()) {
    if (!wait_for_end(left.front(), deadline)) return false;
  }
  return true;
}

/// Looks until `condition` holds, again each 20 ms: for what nothing announces, as files and /proc.
/// False when the process has ended or so much time has passed, and it still does not.
inline bool look_until(pid_t pid,
                       const std::function<bool()>& condition,
                       double seconds = hang_seconds) {
  constexpr double look_seconds = 0.02;
  const Deadline deadline = Deadline::after(seconds);
  while (!condition()) {
    if (deadline.passed() || wait_for_end(pid, deadline.at_most(look_seconds))) return condition();
  }
  return true;
}

/// Suspends a process for so long.
inline void suspend(pid_t pid, double seconds) {
  ::kill(pid, SIGSTOP);
  wait_for_end(pid, Deadline::after(seconds));
  ::kill(pid, SIGCONT);
}

/// Lets a process live until a random moment: what a storm of kills is about. Nothing is waited for
/// but its end.
inline void wait_for_random_moment(pid_t pid, std::mt19937& random, int milliseconds_max) {
  const auto milliseconds = random() % static_cast<unsigned>(milliseconds_max);
  wait_for_end(pid, Deadline::after(static_cast<double>(milliseconds) / 1e3));
}

}  // namespace dstrain::test
