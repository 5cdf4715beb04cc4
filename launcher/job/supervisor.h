#pragma once
#include <optional>
#include <vector>

#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// What the launcher must do next.
enum class Order {
  none,
  terminate,  ///< SIGTERM to every rank
  kill,       ///< SIGKILL to everything of the job
  abandon,    ///< agents do not answer: cut them off
};

/// The first rank that ended with an error of its own.
struct RankFailure {
  int rank = 0;
  int wait_status = 0;
  KillCause kill_cause = KillCause::none;
};

/// Decides, from the ranks' ends and the user's signals, when to stop, when to kill, and the exit
/// status of the launcher. No clock, no process, no I/O: times are seconds of any steady clock.
class Supervisor {
 public:
  struct Settings {
    int ranks = 1;  ///< that this launcher starts
    double crash_grace_seconds = 1;
    double stop_grace_seconds = 30;
    int first_rank = 0;  ///< the first of them
    /// Whether a rank's failure makes something else end the others' agents, as mpirun does: their
    /// loss is a consequence then, never the cause.
    bool failure_ends_agents = false;
    /// From SIGKILL for everything to the moment that agents which have not finished are given up.
    /// Longer than a silent host takes to be found lost: a rank that has lost its peer ends before
    /// that, and is not the cause.
    double kill_grace_seconds = 5;
  };
  explicit Supervisor(const Settings& settings);

  Order rank_exited(const Exit& exit, double now);
  /// A rank could not be started, or a host was lost before it had started any.
  Order launch_failed(double now);
  /// A host was lost with its ranks: those from `first_rank` on.
  Order host_lost(int first_rank, int ranks, double now);
  /// The program that started all agents was killed, or kills them, and they end with it.
  Order starter_killed(double now);
  /// SIGINT, SIGTERM, SIGHUP or SIGUSR1: the first asks the ranks to stop, the second hurries them,
  /// the third kills them.
  Order stop_requested(int signal, double now);
  /// A host got one of these signals. It asks the ranks to stop and never hurries them: a program
  /// that ends all processes of a job sends one to each. A rank that died of one did not fail then.
  Order host_asked_to_stop(int signal, double now);
  /// A rank that was asked to stop makes progress with a save: its time starts anew, unless a
  /// second request has hurried it.
  void save_moved(double now);
  /// Ranks were killed in the middle of a save. Returns whether a stop had begun it.
  bool note_killed_save() { return killed_save_ |= gets_time_; }
  /// Call when deadline() has passed.
  Order tick(double now);

  /// When to call tick(); none while nothing is pending.
  [[nodiscard]] std::optional<double> deadline() const { return deadline_; }
  [[nodiscard]] bool all_ended() const { return ended_ == settings_.ranks; }
  [[nodiscard]] const std::optional<RankFailure>& first_failure() const { return failure_; }
  /// Whether SIGKILL has been sent to all.
  [[nodiscard]] bool killing() const {
    return phase_ == Phase::killing || phase_ == Phase::abandoned;
  }
  /// Whether the first failed rank ended with an error status of its own, as one that cannot reach
  /// another does.
  [[nodiscard]] bool failed_by_itself() const;
  /// Whether the ranks were told to end, by whatever cause.
  [[nodiscard]] bool stopping() const { return phase_ != Phase::running; }
  /// Whether the failed rank explains the loss of hosts from now on.
  [[nodiscard]] bool failure_explains_losses() const {
    return failure_ && settings_.failure_ends_agents;
  }
  /// Whether the loss of a host is what ended the job.
  [[nodiscard]] bool lost_a_host() const { return lost_; }
  [[nodiscard]] std::optional<int> stop_signal() const { return stop_signal_; }
  /// Whether ranks that were asked to stop were killed while they saved.
  [[nodiscard]] bool killed_a_save() const { return killed_save_ && !failure_ && !lost_; }
  /// Whether the user asked for a stop, even if the job was already failing. A host that is asked
  /// after a rank has failed, or just before that is known, is asked by what started the ranks:
  /// srun and mpirun end them all.
  [[nodiscard]] bool asked_to_stop() const {
    return stop_requests_ > 0 || (host_asked_ && !failure_explains_ask_);
  }
  /// Whether only a host was asked to stop, and not this process.
  [[nodiscard]] bool only_a_host_asked() const { return host_asked_ && stop_requests_ == 0; }
  [[nodiscard]] int exit_status() const;

 private:
  enum class Phase { running, stopping, killing, abandoned };
  [[nodiscard]] std::size_t index(int rank) const {
    return static_cast<std::size_t>(rank - settings_.first_rank);
  }
  [[nodiscard]] bool may_be_a_consequence() const;
  [[nodiscard]] bool may_have_ended_others() const;
  void note_stop_signal(int signal);
  Order crash(double now);
  Order ask(double now);
  Order stop(double now, double grace_seconds);
  Order kill(double now);

  Settings settings_;
  Phase phase_ = Phase::running;
  std::optional<double> deadline_;
  std::optional<RankFailure> failure_;
  std::optional<int> stop_signal_;
  bool lost_ = false;
  int stop_requests_ = 0;
  bool host_asked_ = false;
  double host_asked_at_ = 0;           ///< the first time
  bool failure_explains_ask_ = false;  ///< the host was asked because a rank failed
  bool gets_time_ = false;             ///< to save: not after a crash, nor after a second request
  bool killed_save_ = false;
  bool rank_asked_ = false;  ///< to stop, which began the stop of the job
  bool launch_failed_ = false;
  int ended_ = 0;
  int ended_with_checkpoint_ = 0;
  int ended_well_ = 0;
  std::vector<bool> has_ended_;
};

}  // namespace dstrain::launcher
