#pragma once
#include "launcher/hosts/host_agents.h"
#include "launcher/job/console.h"
#include "launcher/job/hang_watch.h"
#include "launcher/job/job_server.h"
#include "launcher/job/launch_report.h"
#include "launcher/job/supervisor.h"
#include "runtime/base/clock.h"

namespace dstrain::launcher {

/// What is heard of a job's ranks, from the first that is started to the last that ends, on its way
/// to whom it concerns: the supervisor, whose orders are passed on to the agents, the server of
/// `dstrain status`, and the user.
class JobEvents {
 public:
  struct Parties {
    const HostAgents& agents;
    Supervisor& supervisor;
    JobStatus& status;
    JobServer& server;
    Console& console;
    LaunchReport& report;
    HangWatch& hangs;
    const Clock& clock;
  };
  /// Borrows all.
  explicit JobEvents(const Parties& parties) : to_(parties) {}

  /// Passes on to the agents what the supervisor wants.
  void carry_out(Order order) const;
  /// From an agent that has its job. Throws Error{remote} for what no agent of ours sends.
  void take(HostAgent& agent, const Frame& frame);
  /// A child of the launcher has ended: an agent, a client, or a rank that a dead agent has left.
  void child_ended(pid_t pid, int wait_status);
  /// Nothing more comes from an agent that had not finished its job.
  void host_lost(HostAgent& agent, const std::string& reason);

 private:
  void started(HostAgent& agent, WireReader in);
  void refused(HostAgent& agent, WireReader in);
  void stop_asked(const HostAgent& agent, int signal);
  void rank_ended(const Exit& exit);
  void note_starter_end();
  void note_rank_killed_in_save(const Exit& exit);

  Parties to_;
};

}  // namespace dstrain::launcher
