#pragma once
#include <array>
#include <string>
#include <vector>

#include "launcher/doctor/finding.h"
#include "launcher/doctor/host_messages.h"

namespace dstrain::launcher::doctor {

/// The checks between hosts, in the order of the report; a page of docs/ has a row for each.
inline constexpr std::array host_checks{"reachable", "same_version", "clock", "ports",
                                        "same_hosts"};

/// How far a host's clock is ahead of this machine's, in seconds, give or take `doubt`.
struct ClockOffset {
  double ahead = 0;
  double doubt = 0;
};

/// The findings and facts of one host.
struct HostReport {
  std::string host;
  std::vector<Finding> findings{};
  bool looked = false;  ///< all its checks have ended; else the rest is not known
  MachineFacts machine{};
  ClockOffset clock{};
};

/// Adds findings about clocks and machines that differ from those of `reports.front()`, which is
/// this machine.
void compare_hosts(std::vector<HostReport>& reports);

int count_problems(const std::vector<HostReport>& reports);

/// For people: a block for each host and a line with the total.
std::string as_table(const std::vector<HostReport>& reports);

/// {"hosts": [{"host", "findings": [{"check", "level", "what", "fix"}]}], "problems": N}
std::string as_json(const std::vector<HostReport>& reports);

}  // namespace dstrain::launcher::doctor
