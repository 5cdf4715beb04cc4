#include "launcher/job/job_children.h"

#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/wait.h>

#include "launcher/process/children.h"
#include "runtime/base/clock.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double sweep_seconds_max = 10;

}  // namespace

JobChildren::JobChildren(const std::string& job_id)
    : marker_(std::string(env::job) + "=" + job_id) {
  for (const pid_t pid : list_children()) others_.insert(pid);
}

void JobChildren::reap(const OnEnd& on_end) {
  for (;;) {
    int wait_status = 0;
    const pid_t pid = waitpid(-1, &wait_status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    spared_.erase(pid);
    if (others_.erase(pid) == 0) on_end(pid, wait_status);
  }
}

/// Returns how many there were.
std::size_t JobChildren::kill_all() const {
  std::size_t killed = 0;
  for (const pid_t pid : list_children()) {
    if (others_.contains(pid) || spared_.contains(pid)) continue;
    // Orphans of the others come to us too; only those processes carry the job's id that are its.
    if (!others_.empty() && !has_environment_entry(pid, marker_.c_str())) continue;
    kill(pid, SIGKILL);
    ++killed;
  }
  return killed;
}

void JobChildren::sweep(const OnEnd& on_end) {
  const SteadyClock clock;
  const double end = clock.now_seconds() + sweep_seconds_max;
  reap(on_end);
  while (kill_all() > 0 && clock.now_seconds() < end) {
    poll(nullptr, 0, sweep_poll_milliseconds);
    reap(on_end);
  }
}

}  // namespace dstrain::launcher
