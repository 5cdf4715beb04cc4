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
  /// To be sent to these agents. One request at a time.
  std::uint32_t begin(Agents agents, double now);
  /// Those that have not answered yet.
  [[nodiscard]] const Agents& awaited() const { return awaited_; }
  [[nodiscard]] bool under_way() const { return !awaited_.empty(); }
  [[nodiscard]] std::optional<double> deadline() const;
  /// What an agent answers.
  void take(int agent, const Stacks& stacks);
  /// It will not answer.
  void give_up(int agent);
  /// Whether all is there that will come: once for each request.
  bool take_end(double now);

  /// The stacks of one rank, or of several whose stacks are alike.
  struct Group {
    std::vector<int> ranks;
    std::string text;  ///< whole lines
  };
  [[nodiscard]] std::vector<Group> groups() const;
  /// Lines for people: what groups() gives, and why there is no more.
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
