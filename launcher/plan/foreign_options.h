#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// What to type instead of a launch option of torchrun, accelerate, mpirun, srun or DeepSpeed that
/// dstrain does not have, or has under another name; empty: the option is not known. `name`:
/// without its value, '_' for '-' within it: "--nproc_per_node", "-np". `value`: the word behind
/// it, if any.
std::string hint_at_own_option(std::string_view name, std::string_view value = {});

}  // namespace dstrain::launcher
