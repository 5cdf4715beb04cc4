#include "launcher/job/restart_pause.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <span>
#include <vector>

#include <poll.h>

#include "launcher/job/hang_watch.h"
#include "launcher/process/signals.h"
#include "runtime/base/clock.h"
#include "runtime/base/deadline.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr double longest_pause_seconds = 60;

}  // namespace

double restart_pause_seconds(int fruitless) {
  return fruitless < 2 ? 0 : std::min(std::ldexp(1.0, fruitless - 2), longest_pause_seconds);
}

std::optional<int> pause_before_restart(double seconds, JobSession& session) {
  SignalSource& signals = session.signals;
  const SteadyClock clock;
  const Deadline deadline = Deadline::after(seconds);
  while (!deadline.passed()) {
    std::vector<pollfd> fds{{signals.fd(), POLLIN, 0}};
    session.server.add_polls(fds);
    if (poll(fds.data(), fds.size(), deadline.remaining_ms()) < 0 && errno != EINTR) {
      fail_errno(errno, "poll");
    }
    while (const auto signal = signals.next()) {
      if (signal->number != SIGCHLD) return signal->number;
    }
    const JobServer::Requests requests =
        session.server.serve(std::span(fds).subspan(1), clock.now_seconds());
    if (requests.stop) return SIGTERM;
    if (requests.stacks) session.server.answer_stacks(no_stacks_json("the job is restarting"));
  }
  return std::nullopt;
}

}  // namespace dstrain::launcher
