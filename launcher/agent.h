#pragma once

namespace dstrain::launcher {

/// The per-node agent: reads a job from stdin, starts its ranks, sends their output and ends to
/// stdout (protocol.h), and returns when every process of the job has ended. It owns them all: as a
/// subreaper it finds even those that made sessions of their own, and when stdin ends (the launcher
/// or the connection died) it kills them. Single-threaded. Returns the exit status of the process.
int run_agent();

}  // namespace dstrain::launcher
