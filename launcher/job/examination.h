#pragma once
#include <string>
#include <vector>

#include "launcher/doctor/report.h"
#include "launcher/hosts/remote_link.h"

namespace dstrain::launcher {

/// A host to examine.
struct ExaminedHost {
  std::string name;
  bool remote = false;               ///< reached over the network
  bool of_job = true;                ///< has ranks, which the ranks of other hosts must reach
  std::vector<std::string> words{};  ///< what dstrain runs there: its arguments
};

struct Examination {
  std::string version;              ///< of dstrain, which each host must have
  std::vector<ExaminedHost> hosts;  ///< this machine first
  OpenRemote open;                  ///< as a launch opens its links
  double seconds = 30;              ///< for all checks of a host, reaching it included
};

/// Examines all hosts at once, the same way as a launch: an agent on each host starts this program.
/// Then each host opens a port to which the others connect. A host that does not come up, or is not
/// done in time, gets that as its problem. Takes at most `seconds`, and then 20 for the ports. Call
/// it from a single-threaded process. Throws Error when nothing can be started at all.
std::vector<doctor::HostReport> examine_hosts(const Examination& examination);

}  // namespace dstrain::launcher
