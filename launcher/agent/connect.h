#pragma once
#include <string>

namespace dstrain::launcher {

/// Connects an agent that srun or mpirun has started to the launcher (agents_variable), proves the
/// secret, sends the rank from `rank_variable`, and makes the connection its stdin and stdout.
/// Unsets agents_variable, so that ranks do not inherit it. Throws Error{remote} when the launcher
/// cannot be reached, and Error{usage} when the variables are missing.
void connect_to_launcher(const std::string& rank_variable);

}  // namespace dstrain::launcher
