#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/protocol/rank_look.h"

namespace dstrain::launcher {

/// One request to all agents for the stacks of their ranks, until each has answered or is given up,
/// or time is up. An agent is known by its first rank. Times are seconds of any steady clock.
class StackCollection {
 public:
  using Agents = std::map<int, std::string>;  ///< the names of their hosts by first rank
  /// Starts a request and returns its number, to be sent to these agents. One request at a time.
  std::uint32_t begin(Agents agents, double now);
  /// Those that have not answered yet.
  [[nodiscard]] const Agents& awaited() const { return awaited_; }
  [[nodiscard]] bool under_way() const { return !awaited_.empty(); }
  [[nodiscard]] std::optional<double> deadline() const;
  /// Takes an agent's answer.
  void take(int agent, const Stacks& stacks);
  /// Stops waiting for this agent.
  void give_up(int agent);
  /// Whether all answers are there or the deadline has passed: true once for each request.
  bool take_end(double now);

  /// The stacks of one rank, or of several whose stacks are alike.
  struct Group {
    std::vector<int> ranks;
    std::string text;  ///< whole lines
  };
  [[nodiscard]] std::vector<Group> groups() const;
  /// Lines for people: the groups, and why stacks are missing.
  [[nodiscard]] std::string text() const;

 private:
  std::uint32_t request_ = 0;
  Agents awaited_;
  double deadline_ = 0;
  std::map<int, std::string> ranks_;
  std::string failures_;
  std::set<std::string> silent_;  ///< hosts whose agents were given up
};

}  // namespace dstrain::launcher
