#pragma once
#include "launcher/hosts/host_agents.h"
#include "launcher/job/console.h"
#include "launcher/job/hang_watch.h"
#include "launcher/job/job_server.h"
#include "launcher/job/launch_report.h"
#include "launcher/job/supervisor.h"
#include "runtime/base/clock.h"

namespace dstrain::launcher {

/// Passes events of a job's ranks, from the first start to the last end, to the supervisor, the
/// server of `dstrain status` and the user, and passes the supervisor's orders on to the agents.
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

  /// Passes the supervisor's order on to the agents.
  void carry_out(Order order) const;
  /// Takes a frame of an agent that has its job. Throws Error{remote} for a frame that our agents
  /// do not send.
  void take(HostAgent& agent, const Frame& frame);
  /// A child of the launcher has ended: an agent, a client, or a rank that a dead agent has left.
  void child_ended(pid_t pid, int wait_status);
  /// The connection to an agent ended before the agent had finished its job.
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
