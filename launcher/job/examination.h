#pragma once
#include <string>
#include <vector>

#include "launcher/doctor/report.h"
#include "launcher/hosts/remote_link.h"

namespace dstrain::launcher {

/// A host to be looked at.
struct ExaminedHost {
  std::string name;
  bool remote = false;               ///< reached over the network
  bool of_job = true;                ///< has ranks, which those of the others must reach
  std::vector<std::string> words{};  ///< what dstrain runs there: its arguments
};

struct Examination {
  std::string version;              ///< of dstrain, which each host must have
  std::vector<ExaminedHost> hosts;  ///< this machine first
  OpenRemote open;                  ///< as a launch opens its links
  double seconds = 30;              ///< for all checks of a host, reaching it included
};

/// Looks at all hosts at once, by the way that a launch takes: an agent on each, which starts this
/// program. Then each opens a port to which the others connect. A host that does not come up, or is
/// not done in time, has that as its problem. Takes at most `seconds`, and then 20 for the ports.
/// Call it from a single-threaded process. Throws Error when nothing can be started at all.
std::vector<doctor::HostReport> examine_hosts(const Examination& examination);

}  // namespace dstrain::launcher
