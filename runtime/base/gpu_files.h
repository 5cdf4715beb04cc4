#pragma once

namespace dstrain {

/// How many GPUs have device files, nvidia0 and the like, in /dev or where DSTRAIN_GPU_DIRECTORY
/// says: what can be told of them without a driver.
int count_gpu_files();

/// The same; 0 where CUDA_VISIBLE_DEVICES hides them all.
int count_visible_gpu_files();

}  // namespace dstrain
