#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "launcher/protocol/rank_look.h"

namespace dstrain::launcher {

/// A rank as its agent saw it last.
struct WatchedRank {
  RankLook look;
  std::int64_t now_ns = 0;   ///< of the last look, by the clock of the rank's machine
  double still_seconds = 0;  ///< in which it was watched and made no progress
  [[nodiscard]] bool publishes() const { return look.progress.compute.changes > 0; }
};
using WatchedRanks = std::map<int, WatchedRank>;

/// Decides whether a job hangs: no rank makes progress for longer than is usual in its phase. A
/// rank that the others do not need yet keeps a job alive; once they need it, all stand still. Only
/// the time that the agents report as watched counts: time in which the launcher or a machine was
/// stopped does not. No clock, no I/O.
class Watch {
 public:
  /// `least_seconds`: never sooner than that; 0: never at all.
  explicit Watch(double least_seconds) : least_seconds_(least_seconds) {}

  /// One look of the agent of these ranks.
  void take(std::span<const int> ranks, const AgentLook& look);
  void rank_ended(int rank) { ranks_.erase(rank); }

  enum class News {
    none,
    hangs,       ///< told once
    moves_again  ///< after that
  };
  /// What has changed since the last call.
  News judge();
  [[nodiscard]] bool hangs() const { return hangs_; }
  /// Whether a rank is writing a checkpoint or its model.
  [[nodiscard]] bool saves() const;
  /// Whether one of these made progress with it since the last call.
  bool take_save_move() { return std::exchange(save_moved_, false); }
  /// How long no rank has made progress.
  [[nodiscard]] double still_seconds() const;
  /// How long that may last. In training and evaluation, once some of it was seen: five times the
  /// longest recent standstill. Before, and while files are read or written, whose time is unknown:
  /// twenty times the least. If a signal has stopped a rank: the least.
  [[nodiscard]] double limit_seconds() const;
  /// The ranks that run.
  [[nodiscard]] const WatchedRanks& ranks() const { return ranks_; }

 private:
  /// What is known of one phase.
  struct Learnt {
    double longest_seconds = 0;  ///< standstill of the job, older ones counting less
    std::int64_t moves = 0;
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
  };
  void learn(const ComputeState& state, double standstill_seconds);
  [[nodiscard]] double limit_of(RunPhase phase) const;
  Learnt& learnt(RunPhase phase) { return learnt_.at(static_cast<std::size_t>(phase) % phases); }
  [[nodiscard]] const Learnt& learnt(RunPhase phase) const {
    return learnt_.at(static_cast<std::size_t>(phase) % phases);
  }

  static constexpr std::size_t phases = 9;
  double least_seconds_;
  WatchedRanks ranks_;
  std::array<Learnt, phases> learnt_{};
  bool hangs_ = false;
  bool save_moved_ = false;
};

}  // namespace dstrain::launcher
