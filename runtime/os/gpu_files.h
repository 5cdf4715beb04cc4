#pragma once
#include <string_view>

namespace dstrain {

/// Whether a file of that name in /dev is a GPU: nvidia0 and the like.
bool is_gpu_file(std::string_view name);

/// How many GPUs have device files, nvidia0 and the like, in /dev or where DSTRAIN_GPU_DIRECTORY
/// says: what can be told of them without a driver.
int count_gpu_files();

/// Of them, those that CUDA_VISIBLE_DEVICES shows. Throws Error{usage} for a list that is wrong
/// (visible_gpus.h).
int count_visible_gpu_files();

/// Throws the same, also where no GPU has a device file and CUDA may know of some.
void check_visible_gpus();

}  // namespace dstrain
