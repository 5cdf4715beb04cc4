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
  double still_seconds = 0;  ///< in which it was looked at and did not move
  [[nodiscard]] bool publishes() const { return look.progress.compute.changes > 0; }
};
using WatchedRanks = std::map<int, WatchedRank>;

/// Whether a job hangs: no rank of it moves for longer than is usual in the phase that it is in. A
/// rank that the others do not need yet keeps a job alive; once they need it, all stand still. Time
/// is what the agents say they watched: a launcher or a machine that was stopped meanwhile counts
/// for nothing. No clock, no I/O.
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
  /// What has come of it since the last call.
  News judge();
  [[nodiscard]] bool hangs() const { return hangs_; }
  /// Whether a rank is writing a checkpoint or its model.
  [[nodiscard]] bool saves() const;
  /// Whether one of these was seen to get on with it since the last call.
  bool take_save_move() { return std::exchange(save_moved_, false); }
  /// How long no rank has moved.
  [[nodiscard]] double still_seconds() const;
  /// How long they may. In training and evaluation, once some of it was seen: five times the
  /// longest standstill of late. Before, and while files are read or written, which takes as long
  /// as it takes: twenty times the least. A rank that a signal has stopped gets on with nothing:
  /// the least.
  [[nodiscard]] double limit_seconds() const;
  /// Those that run.
  [[nodiscard]] const WatchedRanks& ranks() const { return ranks_; }

 private:
  /// Of one phase.
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
