#pragma once
#include <string_view>

namespace dstrain::launcher {

/// run_agent() in a child, watched by this process: when the agent is killed, what its ranks leave
/// behind comes to this subreaper and is killed; when this process is killed, the agent ends all.
/// So that on a machine without a launcher, too, no single death leaves anything running.
int run_guarded_agent(std::string_view version);

}  // namespace dstrain::launcher
