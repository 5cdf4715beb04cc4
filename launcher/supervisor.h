#pragma once
#include <optional>
#include <vector>

#include "launcher/protocol.h"

namespace dstrain::launcher {

/// What the launcher must do next.
enum class Order {
  none,
  terminate,  ///< SIGTERM to every rank
  kill,       ///< SIGKILL to everything of the job
  abandon,    ///< the agent does not answer: kill it, and what it leaves behind
};

/// The first rank that ended with an error of its own.
struct RankFailure {
  int rank = 0;
  int wait_status = 0;
  OomVerdict oom = OomVerdict::none;
};

/// Decides, from the ranks' ends and the user's signals, when to stop, when to kill, and the exit
/// status of the launcher. No clock, no process, no I/O: times are seconds of any steady clock.
class Supervisor {
 public:
  struct Settings {
    int world_size = 1;
    double crash_grace_seconds = 1;
    double stop_grace_seconds = 30;
  };
  explicit Supervisor(const Settings& settings);

  Order rank_exited(const Exit& exit, double now);
  /// A rank could not be started.
  Order launch_failed(double now);
  /// SIGINT, SIGTERM, SIGHUP or SIGUSR1: the first asks, the second hurries, the third kills.
  Order stop_requested(int signal, double now);
  /// The agent ended without saying that all is done.
  void agent_lost(int wait_status);
  /// Call when deadline() has passed.
  Order tick(double now);

  /// When to call tick(); none while nothing is pending.
  [[nodiscard]] std::optional<double> deadline() const { return deadline_; }
  [[nodiscard]] bool all_ended() const { return ended_ == settings_.world_size; }
  [[nodiscard]] bool has_ended(int rank) const { return has_ended_[index(rank)]; }
  [[nodiscard]] const std::optional<RankFailure>& first_failure() const { return failure_; }
  /// Whether the ranks were told to end, by whatever cause.
  [[nodiscard]] bool stopping() const { return phase_ != Phase::running; }
  [[nodiscard]] std::optional<int> stop_signal() const { return stop_signal_; }
  [[nodiscard]] int exit_status() const;

 private:
  enum class Phase { running, stopping, killing, abandoned };
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  Order stop(double now, double grace_seconds);
  Order kill(double now);

  Settings settings_;
  Phase phase_ = Phase::running;
  std::optional<double> deadline_;
  std::optional<RankFailure> failure_;
  std::optional<int> stop_signal_;
  std::optional<int> agent_status_;
  int stop_requests_ = 0;
  bool launch_failed_ = false;
  int ended_ = 0;
  int ended_with_checkpoint_ = 0;
  std::vector<bool> has_ended_;
};

/// A wait status as a shell shows it: the exit status, or 128 + the signal.
int shell_status(int wait_status);

}  // namespace dstrain::launcher
