#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/protocol/rank_look.h"

namespace dstrain::launcher {

/// One request to all agents for the stacks of their ranks, until all have answered or time is up.
/// Times are seconds of any steady clock.
class StackCollection {
 public:
  /// To be sent to all agents: so many will answer. One request at a time.
  std::uint32_t begin(std::size_t agents, double now);
  [[nodiscard]] bool under_way() const { return agents_left_ > 0; }
  [[nodiscard]] std::optional<double> deadline() const;
  /// What an agent answers; `host` names it where there are no stacks of its ranks.
  void take(const std::string& host, const Stacks& stacks);
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
  std::size_t agents_left_ = 0;
  double deadline_ = 0;
  std::map<int, std::string> ranks_;
  std::string failures_;
};

}  // namespace dstrain::launcher
