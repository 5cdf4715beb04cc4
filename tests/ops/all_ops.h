#pragma once
#include <vector>

#include "runtime/device/memory_resource.h"
#include "runtime/tensor/dtype.h"
#include "tests/support/device_tensors.h"

namespace dstrain::test {

struct OpsRun {
  DType dtype;  ///< of weights and activations
  MemoryResource& memory;
  StreamView stream;
  bool products = true;         ///< of matrices too, whose bits depend on the number of threads
  std::int64_t head_size = 20;  ///< of attention
};

/// What every op makes of random tensors: all of them, read and written.
std::vector<TensorBytes> run_all_ops(const OpsRun& run);

}  // namespace dstrain::test
