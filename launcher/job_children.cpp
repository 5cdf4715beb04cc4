#include "launcher/job_children.h"

#include <cerrno>
#include <csignal>

#include <sys/wait.h>

#include "launcher/children.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {

JobChildren::JobChildren(const std::string& job_id)
    : marker_(std::string(env::job) + "=" + job_id) {
  for (const pid_t pid : list_children()) others_.insert(pid);
}

void JobChildren::reap(const std::function<void(pid_t, int)>& on_end) {
  for (;;) {
    int wait_status = 0;
    const pid_t pid = waitpid(-1, &wait_status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    spared_.erase(pid);
    if (others_.erase(pid) == 0) on_end(pid, wait_status);
  }
}

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

}  // namespace dstrain::launcher
