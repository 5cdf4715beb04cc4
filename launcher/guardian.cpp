#include "launcher/guardian.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/children.h"
#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_fd.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double hopeless_seconds = 60;  // a process stuck in the kernel does not die
constexpr int sweep_milliseconds = 10;

/// Where the other side waits for the end of these streams, it waits for the child's alone.
void let_streams_go() {
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_fd) fail_errno(errno, "open /dev/null");
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) dup2(null_fd.get(), fd);
}

int wait_for(pid_t child) {
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0) {
    if (errno != EINTR) fail_errno(errno, "wait for the agent");
  }
  return wait_status;
}

/// Orphans of the child are our children now, and theirs will be.
void kill_leftovers() {
  const Deadline hopeless = Deadline::after(hopeless_seconds);
  while (!hopeless.passed()) {
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD) return;
    for (const pid_t child : list_children()) kill(child, SIGKILL);
    poll(nullptr, 0, sweep_milliseconds);
  }
}

/// Ends this process as the child ended.
void die_of(int signal_number) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(signal_number, SIG_DFL);
  kill(getpid(), signal_number);
}

}  // namespace

int guard(FunctionRef<int()> body) {
  become_subreaper();
  const pid_t guardian = getpid();
  const pid_t child = fork();
  if (child < 0) fail_errno(errno, "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == guardian ? body() : status::failed;
  }
  let_streams_go();
  const int wait_status = wait_for(child);
  kill_leftovers();
  if (WIFSIGNALED(wait_status)) die_of(WTERMSIG(wait_status));
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : status::failed;
}

}  // namespace dstrain::launcher
