#pragma once
#include <cstdlib>
#include <memory>

#include "runtime/backend/open_backend.h"
#include "tests/support/skip.h"

namespace dstrain::test {

/// The GPU that DSTRAIN_TEST_GPU says tests may use: "1", or what stands in for one. Skips the test
/// without it; a GPU that does not start fails it.
inline std::unique_ptr<Backend> open_test_gpu() {
  if (std::getenv("DSTRAIN_TEST_GPU") == nullptr) skip("DSTRAIN_TEST_GPU names no GPU");
  return open_backend({DeviceKind::cuda, 0});
}

}  // namespace dstrain::test
