#pragma once
#include <optional>
#include <vector>

#include "launcher/agent/agent_rank.h"
#include "launcher/agent/agent_sender.h"
#include "runtime/base/clock.h"

namespace dstrain::launcher {

/// Tells the launcher every so often where the ranks of an agent are. Time in which they could not
/// move is not counted: while the agent itself was stopped, and while their output waits for the
/// launcher. While stacks are taken it tells no more than that the agent lives.
class RankWatch {
 public:
  /// Borrows all.
  RankWatch(std::vector<AgentRank>& ranks, AgentSender& sender, const Clock& clock)
      : ranks_(ranks), sender_(sender), clock_(clock) {}

  /// From now on; 0: not at all.
  void start(double period_seconds);
  /// Threads of which stacks are taken are traced, which is no state of theirs.
  enum class Sight { clear, traced };
  /// Looks, when the time has come.
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
  bool held_ = false;  ///< output was, at the last look
};

}  // namespace dstrain::launcher
