#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// What CUDA_VISIBLE_DEVICES shows of a machine's GPUs, in its order: numbers, or UUIDs as
/// nvidia-smi -L prints them, of GPUs or of instances (MIG), which are taken as they are. Nothing
/// where it is empty or begins with -1. `present`: how many there are to count; 0: it is not known.
///
/// CUDA ignores all from the first entry on that names no GPU, in silence, so that ranks would
/// share the GPUs before it: such a list is a failure, and so is one that names a GPU twice.
Result<std::vector<std::string>> visible_gpus(std::string_view list, int present);

/// Whether it shows none.
bool hides_all_gpus(std::string_view list);

/// Whether an entry is a UUID.
bool is_gpu_uuid(std::string_view entry);

}  // namespace dstrain
