#pragma once

namespace dstrain::cmd {

/// From now on SIGTERM, SIGINT and SIGUSR1 are only remembered: the training loop stops at the end
/// of the step.
void catch_stop_signals();
/// The last of them, or 0.
int stop_signal();

}  // namespace dstrain::cmd
