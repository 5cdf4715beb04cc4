#include "runtime/rank/compute_environment.h"

#include <algorithm>
#include <cstdlib>

#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("ComputeEnvironment: finds variables that change arithmetic and memory and devices",
          "[base]") {
  for (const char* const name :
       {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "CUDA_DEVICE_ORDER", "CUBLAS_WORKSPACE_CONFIG",
        "NVIDIA_TF32_OVERRIDE", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"}) {
    CAPTURE(name);
    CHECK(changes_computing(name));
  }
  for (const char* const name : {"CUDA_VISIBLE_DEVICES", "HOME", "OMP_NUM_THREADS", ""}) {
    CAPTURE(name);
    CHECK_FALSE(changes_computing(name));
  }
  ::setenv("ONEDNN_TEST", "AVX2", 1);
  ::setenv("CUDA_TEST_HOME", "/usr/local/cuda", 1);
  const std::vector<std::string> found = compute_environment();
  CHECK(std::ranges::count(found, "ONEDNN_TEST=AVX2") == 1);
  CHECK(std::ranges::count(found, "CUDA_TEST_HOME=/usr/local/cuda") == 0);
  CHECK(std::ranges::is_sorted(found));
  ::unsetenv("ONEDNN_TEST");
  ::unsetenv("CUDA_TEST_HOME");
}
