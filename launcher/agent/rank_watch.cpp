#include "launcher/agent/rank_watch.h"

#include <algorithm>
#include <ctime>

namespace dstrain::launcher {
namespace {

/// The ranks are not to blame for a look that is later than this many periods.
constexpr double periods_max = 2;

std::int64_t ranks_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

void RankWatch::start(double period_seconds) {
  period_seconds_ = period_seconds;
  looked_at_ = clock_.now_seconds();
}

bool RankWatch::any_runs() const {
  return std::ranges::any_of(ranks_, &AgentRank::running);
}

std::optional<double> RankWatch::deadline() const {
  if (period_seconds_ == 0 || !any_runs()) return std::nullopt;
  return looked_at_ + period_seconds_;
}

void RankWatch::tick(Sight sight) {
  const double now = clock_.now_seconds();
  if (period_seconds_ == 0 || now < looked_at_ + period_seconds_ || !any_runs()) return;
  const bool held = !sender_.may_output();
  const bool counts = !held && !held_ && sight == Sight::clear;
  AgentLook look{.now_ns = ranks_now_ns(),
                 .seconds = counts ? std::min(now - looked_at_, periods_max * period_seconds_) : 0,
                 .ranks = {}};
  for (AgentRank& rank : ranks_) {
    if (!rank.running() || sight == Sight::traced) continue;
    if (auto changed = rank.view().look()) look.ranks.push_back(*changed);
  }
  held_ = held;
  looked_at_ = now;
  sender_.look(look);
}

}  // namespace dstrain::launcher
