#pragma once
#include <string_view>

namespace dstrain {

/// Whether a file of that name in /dev is a GPU, such as nvidia0.
bool is_gpu_file(std::string_view name);

/// Returns the number of GPUs with device files, such as nvidia0, in /dev or DSTRAIN_GPU_DIRECTORY.
/// This needs no driver.
int count_gpu_files();

/// Returns how many of them CUDA_VISIBLE_DEVICES shows. Throws Error{usage} for a wrong list
/// (visible_gpus.h).
int count_visible_gpu_files();

/// Throws the same, also if no GPU has a device file, because CUDA may know some.
void check_visible_gpus();

}  // namespace dstrain
