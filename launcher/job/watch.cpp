#include "launcher/job/watch.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace dstrain::launcher {
namespace {

constexpr double patience = 20;        // times the least, while nothing is learnt
constexpr double of_the_longest = 5;   // standstills are usual
constexpr double forgetting = 0.99;    // of the longest, with each look that saw a move
constexpr std::int64_t steps_min = 2;  // the first ones touch memory and build kernels
constexpr std::int64_t moves_min = 10;

/// Votes that the ranks repeat while they only wait for a save are not progress.
bool moved(const RankProgress& before, const RankProgress& after) {
  if (before.compute.changes != after.compute.changes) return true;
  if (before.save.changes != after.save.changes) return true;
  if (after.compute.phase == RunPhase::awaiting_save) return false;
  return before.collective.sequence != after.collective.sequence ||
         before.collective.inside != after.collective.inside;
}

bool is_writing(RunPhase phase) {
  return phase == RunPhase::saving || phase == RunPhase::exporting;
}

/// A rank that only waits for others' writing does not write.
bool writes(const RankProgress& progress) {
  return progress.save.busy != 0 || is_writing(progress.compute.phase);
}

bool wrote(const RankProgress& before, const RankProgress& after) {
  return before.save.changes != after.save.changes ||
         (is_writing(after.compute.phase) && before.compute.changes != after.compute.changes);
}

}  // namespace

/// The job made progress in this state after so long.
void Watch::learn(const ComputeState& state, double standstill_seconds) {
  Learnt& learnt = this->learnt(state.phase);
  learnt.longest_seconds = std::max(standstill_seconds, learnt.longest_seconds);
  ++learnt.moves;
  if (learnt.first_step == 0) learnt.first_step = state.step;
  learnt.last_step = std::max(learnt.last_step, state.step);
}

void Watch::take(std::span<const int> ranks, const AgentLook& look) {
  const double standstill = still_seconds() + look.seconds;
  std::optional<ComputeState> moves;  // what a rank that moved was in
  for (const int number : ranks) {
    const auto seen = std::ranges::find(look.ranks, number, &RankLook::rank);
    const auto found = ranks_.find(number);
    if (found == ranks_.end()) {
      if (seen != look.ranks.end()) ranks_[number] = {*seen, look.now_ns, 0};
      continue;
    }
    WatchedRank& rank = found->second;
    rank.now_ns = look.now_ns;
    rank.still_seconds += look.seconds;
    if (seen == look.ranks.end()) continue;
    if (moved(rank.look.progress, seen->progress)) {
      moves = rank.look.progress.compute;
      save_moved_ |= wrote(rank.look.progress, seen->progress);
      rank.still_seconds = 0;
    }
    rank.look = *seen;
  }
  if (!moves) return;
  const bool first_agent = std::ranges::find(ranks, ranks_.begin()->first) != ranks.end();
  if (first_agent) learnt(moves->phase).longest_seconds *= forgetting;
  learn(*moves, hangs_ ? 0 : standstill);  // a hang that has ended is not a usual standstill
}

bool Watch::saves() const {
  return std::ranges::any_of(ranks_,
                             [](const auto& entry) { return writes(entry.second.look.progress); });
}

double Watch::still_seconds() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [number, rank] : ranks_) least = std::min(least, rank.still_seconds);
  return ranks_.empty() ? 0 : least;
}

double Watch::limit_of(RunPhase phase) const {
  const Learnt& learnt = this->learnt(phase);
  const double usual = of_the_longest * learnt.longest_seconds;
  const bool seen = phase == RunPhase::training ? learnt.last_step - learnt.first_step >= steps_min
                    : phase == RunPhase::evaluating ? learnt.moves >= moves_min
                                                    : false;
  return std::max(seen ? least_seconds_ : patience * least_seconds_, usual);
}

double Watch::limit_seconds() const {
  const bool stopped =
      std::ranges::any_of(ranks_, [](const auto& entry) { return entry.second.look.state == 'T'; });
  if (stopped) return least_seconds_;
  double limit = least_seconds_;
  for (const auto& [number, rank] : ranks_) {
    limit = std::max(limit, limit_of(rank.look.progress.compute.phase));
  }
  return limit;
}

Watch::News Watch::judge() {
  const bool any =
      std::ranges::any_of(ranks_, [](const auto& entry) { return entry.second.publishes(); });
  const bool hangs = any && least_seconds_ > 0 && still_seconds() >= limit_seconds();
  if (hangs && !hangs_) {
    hangs_ = true;
    return News::hangs;
  }
  if (!hangs_ || (any && still_seconds() >= least_seconds_ / 2)) return News::none;
  hangs_ = false;
  return any ? News::moves_again : News::none;
}

}  // namespace dstrain::launcher
