#include "launcher/agent/thread_stop.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "runtime/base/deadline.h"

namespace dstrain::launcher {
namespace {

constexpr double stop_seconds_max = 0.5;

}  // namespace

ThreadStop::ThreadStop(pid_t thread) : thread_(thread) {
  seized_ = ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) == 0;
  if (!seized_ || ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) {
    failure_ =
        fmt::format("cannot trace it: {}{}", std::strerror(errno),
                    errno == EPERM ? " (kernel.yama.ptrace_scope, or a container's rules)" : "");
  } else if (!wait()) {
    failure_ = "does not stop";
  }
}

bool ThreadStop::wait() const {
  const Deadline deadline = Deadline::after(stop_seconds_max);
  while (!deadline.passed()) {
    int status = 0;
    const pid_t stopped = waitpid(thread_, &status, __WALL | WNOHANG);
    if (stopped == thread_) return WIFSTOPPED(status);
    if (stopped < 0 && errno != EINTR) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

ThreadStop::~ThreadStop() {
  if (seized_) ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

}  // namespace dstrain::launcher
