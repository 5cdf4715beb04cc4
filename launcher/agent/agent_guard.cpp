#include "launcher/agent/agent_guard.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/agent.h"
#include "launcher/job/supervisor.h"
#include "launcher/process/children.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr int sweeps_max = 12'000;  // a minute: a process stuck in the kernel does not die

/// Waits for the agent, which alone keeps the connection; returns its wait status. A stopped agent
/// would end nobody: it goes on at once.
int wait_for(pid_t agent) {
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null_fd.get(), STDIN_FILENO);
  dup2(null_fd.get(), STDOUT_FILENO);
  int wait_status = 0;
  for (;;) {
    const pid_t pid = waitpid(agent, &wait_status, WUNTRACED);
    if (pid < 0 && errno != EINTR) fail_errno(errno, "wait for the agent");
    if (pid == agent && !WIFSTOPPED(wait_status)) return wait_status;
    if (pid == agent) kill(agent, SIGCONT);
  }
}

void end_leftovers() {
  for (int sweeps = 0; sweeps < sweeps_max; ++sweeps) {
    for (const pid_t child : list_children()) kill(child, SIGKILL);
    pid_t reaped = 0;
    do {
      reaped = waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if (reaped < 0 && errno == ECHILD) return;
    poll(nullptr, 0, sweep_poll_milliseconds);
  }
}

}  // namespace

int run_guarded_agent(std::string_view version) {
  become_subreaper();
  const pid_t guard = getpid();
  const pid_t agent = fork();
  if (agent < 0) fail_errno(errno, "fork");
  if (agent == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) fail_errno(errno, "ask for the parent's death");
    if (getppid() != guard) return status::failed;  // it died before: no signal will come
    return run_agent(version);
  }
  const int wait_status = wait_for(agent);
  end_leftovers();
  return shell_status(wait_status);
}

}  // namespace dstrain::launcher
