#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// Returns the GPUs that CUDA_VISIBLE_DEVICES shows, in order: numbers, or UUIDs as in nvidia-smi
/// -L, of GPUs or instances (MIG), which are not changed. Empty if the list is empty or begins with
/// -1. `present`: the number of GPUs; 0: unknown.
///
/// CUDA silently ignores everything from the first invalid entry on, so that ranks would share the
/// GPUs before it. Such a list is a failure, and so is one that names a GPU twice.
Result<std::vector<std::string>> visible_gpus(std::string_view list, int present);

/// Whether the list shows no GPUs.
bool hides_all_gpus(std::string_view list);

/// Whether an entry is a UUID.
bool is_gpu_uuid(std::string_view entry);

}  // namespace dstrain
