#pragma once
#include <string_view>

namespace dstrain::launcher {

/// The per-node agent: reads a job from stdin, starts its ranks, sends their output and ends to
/// stdout (protocol.h), and returns when every process of the job has ended. It owns them all: as a
/// subreaper it finds even those that made sessions of their own, and when stdin ends (the launcher
/// or the connection died), or has had beats and falls silent, it kills them. Single-threaded.
/// `version` is dstrain's. Returns the exit status of the process.
int run_agent(std::string_view version);

/// The argument of an agent that its launcher watches over itself, being its parent.
inline constexpr std::string_view watched_agent = "--watched";

}  // namespace dstrain::launcher
