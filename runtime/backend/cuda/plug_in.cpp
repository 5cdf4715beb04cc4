// What libdstrain_cuda.so exports.
#include "runtime/backend/cuda/cuda_backend.h"

namespace {

std::unique_ptr<dstrain::Backend> start(dstrain::Device device) {
  return std::make_unique<dstrain::cuda::CudaBackend>(device);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) dstrain::BackendEntry dstrain_backend() {
  return {.version = DSTRAIN_VERSION, .start = start};
}
