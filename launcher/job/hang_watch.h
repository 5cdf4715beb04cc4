#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/hosts/host_agents.h"
#include "launcher/job/console.h"
#include "launcher/job/hang_diagnosis.h"
#include "launcher/job/job_server.h"
#include "launcher/job/stack_collection.h"
#include "launcher/job/supervisor.h"
#include "launcher/job/watch.h"
#include "runtime/base/clock.h"

namespace dstrain::launcher {

/// The answer to `status --stacks` while there are no ranks; `reason` says why there are none.
std::string no_stacks_json(const std::string& reason);

/// Reports hangs on stderr, once per hang: the ranks that hold the job up, the ranks that wait, and
/// a stack of each; and one line when the job makes progress again, unless it is being ended. A
/// hang ends nothing: --timeout does that. Also asks for stacks when a client wants them, and gives
/// up agents that have sent nothing for a while.
class HangWatch {
 public:
  struct Parties {
    const HostAgents& agents;
    const Supervisor& supervisor;
    const JobStatus& status;
    JobServer& server;
    Console& console;
    const Clock& clock;
  };
  /// Borrows all. `least_seconds`: as Watch.
  HangWatch(const Parties& parties, double least_seconds) : to_(parties), watch_(least_seconds) {}

  /// The agents have been given their ranks.
  void ranks_started();
  // Messages of an agent; heard() is called first for each.
  void heard(const HostAgent& agent);
  void take_look(HostAgent& agent, const AgentLook& look);
  void take_stacks(HostAgent& agent, const Stacks& stacks);

  void rank_ended(int rank) { watch_.rank_ended(rank); }
  // As Watch.
  [[nodiscard]] bool saves() const { return watch_.saves(); }
  bool take_save_move() { return watch_.take_save_move(); }
  void host_lost(const HostAgent& agent);
  /// A rank has timed out waiting for others: reports where all of them are.
  void rank_timed_out(int rank);
  /// A client wants stacks.
  void ask_for_stacks();
  /// A client wants a checkpoint, which the first agent is asked for.
  void save_requested();
  /// Call when deadline() has passed.
  void tick();
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  void say_hang();
  void ask_agents();
  void pass_on_stacks();
  void refuse_hopeless_saves(double now);
  enum class Asked { from_outside, by_trouble };
  /// The ranks that hold the job up, a line each; empty if no rank publishes progress. A client
  /// that asks while ranks have just made progress gets no verdict.
  [[nodiscard]] std::vector<std::string> lines(Asked asked) const;
  [[nodiscard]] std::string block() const;
  /// The agents that have sent nothing for so long that their ranks' state is out of date; a line
  /// each.
  [[nodiscard]] std::vector<std::string> silent_lines() const;
  /// The line of one agent; none if it has sent something recently.
  [[nodiscard]] std::optional<std::string> silent_line(const HostAgent& agent) const;
  /// When to stop waiting for an agent that was asked for something.
  [[nodiscard]] double patience_with(int agent, double asked_at) const;
  /// When to stop waiting for the first agent; none: no client waits for a checkpoint.
  [[nodiscard]] std::optional<double> patience_with_save() const;

  Parties to_;
  Watch watch_;
  StackCollection stacks_;
  std::map<int, double> heard_at_;       ///< of each agent that looks, by its first rank
  double asked_at_ = 0;                  ///< for stacks
  std::optional<double> save_asked_at_;  ///< the first of those that are waited for
  bool say_stacks_ = false;              ///< those under way, on stderr
  bool answer_stacks_ = false;           ///< those under way, to clients
};

}  // namespace dstrain::launcher
