#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "launcher/agent/agent_rank.h"
#include "launcher/agent/agent_sender.h"
#include "runtime/base/clock.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Takes the stacks of an agent's ranks in a separate process (take_stacks.h), which may hang,
/// unlike the agent, and is then killed. Requests that arrive meanwhile are answered with the same
/// stacks.
class StackTaker {
 public:
  /// Borrows all.
  StackTaker(std::vector<AgentRank>& ranks, AgentSender& sender, const Clock& clock)
      : ranks_(ranks), sender_(sender), clock_(clock) {}
  StackTaker(const StackTaker&) = delete;
  StackTaker& operator=(const StackTaker&) = delete;
  StackTaker(StackTaker&&) = delete;
  StackTaker& operator=(StackTaker&&) = delete;
  ~StackTaker() { kill_taker(); }

  void take(std::uint32_t request);
  void add_polls(std::vector<pollfd>& fds) const { fds.push_back({output_.get(), POLLIN, 0}); }
  /// Reads what has arrived; answers at its end, or when time is up.
  void tick();
  [[nodiscard]] bool under_way() const { return pid_ != 0; }
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  void start();
  void answer();
  void kill_taker();

  std::vector<AgentRank>& ranks_;
  AgentSender& sender_;
  const Clock& clock_;
  std::vector<std::uint32_t> requests_;
  UniqueFd output_;  ///< of the process, while it runs
  pid_t pid_ = 0;
  double deadline_ = 0;
  std::string text_;
};

}  // namespace dstrain::launcher
