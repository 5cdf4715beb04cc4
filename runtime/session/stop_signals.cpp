#include "runtime/session/stop_signals.h"

#include <array>
#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace dstrain::session {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, signal);
  struct sigaction action {};
  const bool known = ::sigaction(SIGHUP, nullptr, &action) == 0;
  if (!known || action.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

/// Does what the signal does by default, or nothing if it is ignored.
void take_effect(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!signals_) fail_errno(errno, "signalfd");
  end_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!end_) fail_errno(errno, "eventfd");
  thread_ = std::thread([this] { run(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  if (::write(end_.get(), &one, sizeof(one)) != sizeof(one)) {
    log_warning("stop signals: cannot ask the thread to end");
  }
  thread_.join();
}

void StopSignals::run() {
  for (;;) {
    std::array<pollfd, 2> entries{{{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), -1);
    if (entries[1].revents != 0) return;
    signalfd_siginfo info{};
    if (entries[0].revents == 0 ||
        ::read(signals_.get(), &info, sizeof(info)) != ssize_t{sizeof(info)}) {
      continue;
    }
    const int signal = static_cast<int>(info.ssi_signo);
    if (kept_) {
      arrived_ = signal;
    } else {
      take_effect(signal);
    }
  }
}

}  // namespace dstrain::session
