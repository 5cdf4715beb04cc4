#pragma once
#include <string_view>

namespace dstrain::launcher {

/// The per-node agent: reads a job from stdin, starts its ranks, sends their output and ends to
/// stdout (protocol.h), and returns when every process of the job has ended. It owns them all: as a
/// subreaper it finds even those that made their own sessions. It kills them when stdin ends (the
/// launcher or the connection died), or when beats stop. A stop signal asks its ranks to stop, and
/// its launcher to stop the others. Single-threaded. `version` is dstrain's. Returns the exit
/// status of the process.
int run_agent(std::string_view version);

/// Runs run_agent() in a child and watches it. When the agent is killed, this subreaper inherits
/// and kills the processes that its ranks leave; when this process is killed, the agent ends all.
/// Each wakes the other if it is stopped, and input from the launcher wakes both. So a single death
/// leaves nothing running, on a machine without a launcher too.
int run_guarded_agent(std::string_view version);

}  // namespace dstrain::launcher
