#pragma once
#include <optional>
#include <vector>

#include "launcher/agent/agent_rank.h"
#include "launcher/agent/agent_sender.h"
#include "runtime/base/clock.h"

namespace dstrain::launcher {

/// Reports the progress of an agent's ranks to the launcher periodically. Does not count time in
/// which they could make none: while the agent itself was stopped, and while their output waits for
/// the launcher. While stacks are taken, reports only that the agent lives.
class RankWatch {
 public:
  /// Borrows all.
  RankWatch(std::vector<AgentRank>& ranks, AgentSender& sender, const Clock& clock)
      : ranks_(ranks), sender_(sender), clock_(clock) {}

  /// Starts to report with this period; 0: never.
  void start(double period_seconds);
  /// `traced`: stacks are being taken, so the states of threads say nothing.
  enum class Sight { clear, traced };
  /// Looks and reports if it is due.
  void tick(Sight sight);
  /// When tick() is due; none while there is nothing to look at.
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  [[nodiscard]] bool any_runs() const;

  std::vector<AgentRank>& ranks_;
  AgentSender& sender_;
  const Clock& clock_;
  double period_seconds_ = 0;
  double looked_at_ = 0;
  bool held_ = false;  ///< whether output was held back at the last look
};

}  // namespace dstrain::launcher
