#pragma once
#include <string>
#include <vector>

#include "launcher/hosts/host_agents.h"
#include "launcher/job/launch.h"

namespace dstrain::launcher {

/// Runs before the ranks of a job start: every host's agent must say hello with this launcher's
/// version, and the agent of rank 0 must find a port. Times are seconds of a steady clock.
class AgentHandshake {
 public:
  enum class Phase { waiting, done, failed };

  /// Borrows both.
  AgentHandshake(const LaunchJob& job, HostAgents& agents, double now);

  /// Throws Error{remote} when the agent's version or protocol does not fit.
  void take(HostAgent& agent, const Frame& frame);
  /// Checks the progress of all agents. Throws Error{usage} for hosts whose GPUs cannot be used as
  /// asked, and as address().
  Phase advance(double now);

  [[nodiscard]] double deadline() const { return deadline_; }
  /// Once failed: a line for each host that did not come up.
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  /// Once done: where rank 0 will listen, as all ranks can reach it: --master_addr; loopback when
  /// there is one host; the address at which the launcher reached the first host; or the address of
  /// this machine as the first other host sees it. Throws Error{remote} when that cannot be told.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] int port() const { return port_; }

 private:
  void take_hello(HostAgent& agent, const Frame& frame);
  void take_port(const Frame& frame);
  void collect_failures();
  void collect_task_failures();
  void refuse_gpus() const;
  void check_gpus() const;
  void ask_for_port();

  const LaunchJob& job_;
  HostAgents& agents_;
  double deadline_;
  std::vector<std::string> failures_;
  bool asked_ = false;
  int port_ = 0;
};

}  // namespace dstrain::launcher
