#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// What to type instead of a launch option of torchrun, accelerate, mpirun, srun or DeepSpeed that
/// dstrain does not have, or calls otherwise; empty: nothing is known of it. `name`: without its
/// value, '_' for '-' within it: "--nproc_per_node", "-np". `value`: the word behind it, if any.
std::string hint_at_own_option(std::string_view name, std::string_view value = {});

}  // namespace dstrain::launcher
