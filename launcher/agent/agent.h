#pragma once
#include <string_view>

namespace dstrain::launcher {

/// The per-node agent: reads a job from stdin, starts its ranks, sends their output and ends to
/// stdout (protocol.h), and returns when every process of the job has ended. It owns them all: as a
/// subreaper it finds even those that made sessions of their own, and when stdin ends (the launcher
/// or the connection died), or has had beats and falls silent, it kills them. A stop signal asks
/// its ranks to stop, and its launcher to stop the others. Single-threaded. `version` is dstrain's.
/// Returns the exit status of the process.
int run_agent(std::string_view version);

/// run_agent() in a child, watched by this process: when the agent is killed, what its ranks leave
/// behind comes to this subreaper and is killed; when this process is killed, the agent ends all.
/// Either wakes the other when it is stopped, and what comes from the launcher wakes both. So that
/// on a machine without a launcher, too, no single death leaves anything running.
int run_guarded_agent(std::string_view version);

}  // namespace dstrain::launcher
