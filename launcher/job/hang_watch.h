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

/// What `status --stacks` is answered while there are no ranks, and why there are none.
std::string no_stacks_json(const std::string& reason);

/// Tells the user who hangs: on stderr, once for each hang, who holds the job up, who waits, and a
/// stack of each rank; and a line when it moves again, unless it is being ended. Nothing is ended
/// because of it: that is what --timeout is for. Also asks for stacks when a client wants them, and
/// gives up waiting for agents of which nothing is heard.
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
  // From an agent; first of all that there is something.
  void heard(const HostAgent& agent);
  void take_look(HostAgent& agent, const AgentLook& look);
  void take_stacks(HostAgent& agent, const Stacks& stacks);

  void rank_ended(int rank) { watch_.rank_ended(rank); }
  // As Watch.
  [[nodiscard]] bool saves() const { return watch_.saves(); }
  bool take_save_move() { return watch_.take_save_move(); }
  void host_lost(const HostAgent& agent);
  /// A rank has given up waiting for others: says where all of them are.
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
  /// Who holds the job up, a line each; empty where no rank publishes anything. Who asks from
  /// outside, of ranks that have just moved, gets no verdict.
  [[nodiscard]] std::vector<std::string> lines(Asked asked) const;
  [[nodiscard]] std::string block() const;
  /// Of whom nothing has come for so long that what is known of their ranks is old; a line each.
  [[nodiscard]] std::vector<std::string> silent_lines() const;
  /// One of them; none where enough has come of the agent.
  [[nodiscard]] std::optional<std::string> silent_line(const HostAgent& agent) const;
  /// When an agent that was asked for something is not waited for any longer.
  [[nodiscard]] double patience_with(int agent, double asked_at) const;
  /// When the first agent is not waited for any longer; none: nobody waits for a checkpoint.
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
