#pragma once

namespace dstrain::cmd {

/// From now on SIGTERM, SIGINT and SIGUSR1 only set a flag: the training loop stops at the end of
/// the step.
void catch_stop_signals();
bool stop_requested();

}  // namespace dstrain::cmd
