#include "launcher/agent/job_end.h"

#include <csignal>

#include <fmt/ranges.h>

#include "launcher/process/children.h"

namespace dstrain::launcher {
namespace {

constexpr double settle_seconds = 0.2;   // for helpers that end by themselves after their rank
constexpr double leftover_seconds = 1;   // from SIGTERM to SIGKILL for those that do not
constexpr double hopeless_seconds = 60;  // a process stuck in the kernel does not die

}  // namespace

void JobEnd::kill_all(double now) {
  phase_ = Phase::killing;
  deadline_ = now + hopeless_seconds;
}

void JobEnd::kill_children() const {
  ranks_.signal(SIGKILL);
  for (const pid_t child : list_children()) kill(child, SIGKILL);
}

/// Sends SIGTERM once to each; children of those that end become ours and are asked in turn.
void JobEnd::ask_leftovers() {
  for (const pid_t child : list_children()) {
    if (!asked_.insert(child).second) continue;
    kill(child, SIGTERM);
    kill(child, SIGCONT);
  }
}

void JobEnd::advance(double now) {
  if (phase_ == Phase::idle) return;
  if (phase_ == Phase::killing) return kill_children();
  if (ranks_.any_runs() || !ranks_.has_children()) return;
  if (phase_ == Phase::running) {
    phase_ = Phase::settling;
    deadline_ = now + settle_seconds;
  } else if (phase_ == Phase::settling && now >= deadline_) {
    sender_.note(fmt::format("all ranks have ended; ending processes they left running (pid {})",
                             fmt::join(list_children(), ", ")));
    ask_leftovers();
    phase_ = Phase::ending;
    deadline_ = now + leftover_seconds;
  } else if (phase_ == Phase::ending && now < deadline_) {
    ask_leftovers();
  } else if (phase_ == Phase::ending) {
    kill_all(now);
    kill_children();
  }
}

bool JobEnd::reached(double now) const {
  if (phase_ == Phase::idle || ranks_.any_runs()) return false;
  return !ranks_.has_children() || is_hopeless(now);
}

std::optional<double> JobEnd::deadline() const {
  const bool timed = phase_ == Phase::settling || phase_ == Phase::ending;
  return timed ? std::optional(deadline_) : std::nullopt;
}

}  // namespace dstrain::launcher
