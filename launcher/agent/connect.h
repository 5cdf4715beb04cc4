#pragma once
#include <string>

namespace dstrain::launcher {

/// For an agent that srun or mpirun has started: connects to the launcher (agents_variable), proves
/// the secret, says the rank that `rank_variable` holds, and makes the connection its stdin and
/// stdout. Forgets agents_variable, which is no rank's business. Throws Error{remote} when there is
/// no way to the launcher, and Error{usage} when the variables are not there.
void connect_to_launcher(const std::string& rank_variable);

}  // namespace dstrain::launcher
