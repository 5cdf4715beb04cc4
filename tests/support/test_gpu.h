#pragma once
#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/backend/open_backend.h"

namespace dstrain::test {

/// Whether the GPU of the tests is what stands in for one (tests/stand_in): unless DSTRAIN_TEST_GPU
/// says that there is one.
inline bool stands_in_for_gpu() {
  return std::getenv("DSTRAIN_TEST_GPU") == nullptr;
}

/// The variable by whose number what stands in for a GPU draws the order in which it does its work
/// (tests/stand_in/draws.h).
inline constexpr const char* stand_in_seed = "DSTRAIN_STAND_IN_SEED";

/// The folder of its device files, as DSTRAIN_GPU_DIRECTORY has it: a GPU's may be elsewhere than
/// in /dev, by DSTRAIN_TEST_GPU_DIRECTORY.
inline std::string test_gpu_directory() {
  if (stands_in_for_gpu()) return DSTRAIN_STAND_IN "/dev";
  const char* const folder = std::getenv("DSTRAIN_TEST_GPU_DIRECTORY");
  return folder != nullptr ? folder : "/dev";
}

/// This process, and those that it starts, find the plug-in of the tests' GPU.
inline void use_test_gpu() {
  if (stands_in_for_gpu()) ::setenv(env::plug_in_path, DSTRAIN_STAND_IN, 1);
}

inline std::unique_ptr<Backend> open_test_gpu() {
  use_test_gpu();
  return open_backend({DeviceKind::cuda, 0});
}

}  // namespace dstrain::test
