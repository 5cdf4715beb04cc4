#pragma once
#include <optional>
#include <set>

#include <sys/types.h>

#include "launcher/agent/agent_sender.h"
#include "launcher/agent/node_ranks.h"

namespace dstrain::launcher {

/// Ends a job on its node: processes that the ranks left running get time to end by themselves,
/// then SIGTERM, then SIGKILL. Times are seconds of one steady clock.
class JobEnd {
 public:
  /// Borrows both.
  JobEnd(const NodeRanks& ranks, AgentSender& sender) : ranks_(ranks), sender_(sender) {}

  /// A job has started.
  void job_begins() { phase_ = Phase::running; }
  [[nodiscard]] bool has_job() const { return phase_ != Phase::idle; }
  /// From the next advance() on, sends SIGKILL to all children until none is left.
  void kill_all(double now);
  [[nodiscard]] bool kills() const { return phase_ == Phase::killing; }
  /// Moves on when ranks or leftovers have ended or a deadline has passed.
  void advance(double now);
  /// Whether nothing of the job is left, or only processes that do not die.
  [[nodiscard]] bool reached(double now) const;
  /// Whether killing has failed for too long.
  [[nodiscard]] bool is_hopeless(double now) const { return kills() && now > deadline_; }
  /// When advance() is due even if nothing ends; none while killing, when it is due often.
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  enum class Phase {
    idle,      ///< no job yet
    running,   ///< at least one rank runs
    settling,  ///< all ranks ended, other processes of the job did not
    ending,    ///< those got SIGTERM
    killing,   ///< everything gets SIGKILL until nothing is left
  };
  void ask_leftovers();
  void kill_children() const;

  const NodeRanks& ranks_;
  AgentSender& sender_;
  Phase phase_ = Phase::idle;
  double deadline_ = 0;
  std::set<pid_t> asked_;
};

}  // namespace dstrain::launcher
