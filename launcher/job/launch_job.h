#pragma once
#include <string>
#include <vector>

#include "launcher/hosts/host_agent.h"
#include "launcher/hosts/remote_link.h"
#include "launcher/job/supervisor.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// A job, ready to be started.
struct LaunchJob {
  std::string id;       ///< DSTRAIN_JOB of its processes
  std::string version;  ///< of dstrain, which each agent must have
  int world_size = 1;
  std::vector<HostTask> hosts;  ///< those that this launcher starts, in the order of ranks
  Supervisor::Settings supervision;
  std::string master_addr;  ///< empty: to be found out
  PortRequest master_port;
  double connect_seconds = 30;  ///< for all hosts to say hello
  double silence_seconds = 30;  ///< see Relay::Settings
  OpenRemote open;              ///< called in the relay, for each remote host
  std::string log_level = "info";
  bool refuses_gpus = false;  ///< on other hosts: slots are CPU ranks, which nobody has said
  bool bare_output = false;   ///< see LogMux::Prefixes
  std::string program;        ///< see JobStatus
  std::string output_directory;
};

}  // namespace dstrain::launcher
