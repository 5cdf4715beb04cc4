#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include <poll.h>

#include "launcher/agent/agent_rank.h"
#include "launcher/agent/agent_sender.h"
#include "runtime/base/clock.h"

namespace dstrain::launcher {

/// Passes the messages of the ranks' control sockets on to the launcher: answers at once, the
/// progress of the reporting rank at most 20 times a second, and that of the others when they end.
class RankMessages {
 public:
  /// Borrows all.
  RankMessages(std::vector<AgentRank>& ranks, AgentSender& sender, const Clock& clock)
      : ranks_(ranks), sender_(sender), clock_(clock) {}

  /// The first rank is the one that reports.
  void report_first() { reports_ = true; }
  void add_polls(std::vector<pollfd>& fds) const;
  /// Reads what has arrived, and sends what is due.
  void pass_on();
  void rank_ended(AgentRank& rank);
  /// ToAgent::rank_message, for one of the ranks.
  void send_to_rank(std::string_view payload);
  /// When pass_on() is due even if nothing arrives; none while nothing is held back.
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  void send(AgentRank& rank, RankChannel::Which which);
  [[nodiscard]] bool reports(const AgentRank& rank) const {
    return reports_ && &rank == &ranks_.front();
  }

  std::vector<AgentRank>& ranks_;
  AgentSender& sender_;
  const Clock& clock_;
  bool reports_ = false;
  double next_progress_ = 0;
};

}  // namespace dstrain::launcher
