#include "launcher/process/signals.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/signalfd.h>

#include "runtime/base/error.h"

namespace dstrain::launcher {

SignalSource::SignalSource(std::span<const int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  if (sigprocmask(SIG_BLOCK, &set, &previous_) != 0) fail_errno(errno, "block signals");
  fd_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) fail_errno(errno, "signalfd");
}

SignalSource::~SignalSource() {
  sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<ArrivedSignal> SignalSource::next() {
  signalfd_siginfo info{};
  const ssize_t got = read(fd_.get(), &info, sizeof info);
  if (got != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return ArrivedSignal{static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid)};
}

std::vector<int> job_signals() {
  std::vector<int> signals{SIGCHLD};
  struct sigaction action {};
  const bool outlives_terminal =
      sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  for (const int signal : stop_signals) {
    if (signal != SIGHUP || !outlives_terminal) signals.push_back(signal);
  }
  return signals;
}

void set_stop_signals(sighandler_t effect) {
  struct sigaction action {};
  action.sa_handler = effect;
  for (const int signal : stop_signals) sigaction(signal, &action, nullptr);
}

void reset_inherited_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void ignore_broken_pipes() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

void fill_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is taken, which is `fd`: the ones below are open by now.
    if (open("/dev/null", O_RDWR) < 0) fail_errno(errno, "open /dev/null");
  }
}

}  // namespace dstrain::launcher
