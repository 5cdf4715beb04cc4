#include "runtime/backend/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::cuda {
namespace {

/// The compute capability that kernels are built for.
constexpr int major_built = 9;
constexpr int minor_built = 0;

int choose_gpu(Device device) {
  int count = 0;
  DSTRAIN_CUDA_CHECK(cudaGetDeviceCount(&count), "device {}", device.index);
  if (count == 0) fail(ErrorCode::device, "no GPU is visible: see CUDA_VISIBLE_DEVICES");
  return device.index % count;
}

void require_built_for(int ordinal) {
  cudaDeviceProp properties{};
  DSTRAIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal), "GPU {}", ordinal);
  if (properties.major == major_built && properties.minor == minor_built) return;
  fail(ErrorCode::device, "GPU {}, {}, has compute capability {}.{}, and this build is for {}.{}",
       ordinal, properties.name, properties.major, properties.minor, major_built, minor_built);
}

}  // namespace

CudaBackend::CudaBackend(Device device)
    : Backend(device), ordinal_(choose_gpu(device)), memory_(device, ordinal_) {
  require_built_for(ordinal_);
  // Threads that wait for the GPU look again and again, and let others go first: to be woken by an
  // interrupt takes milliseconds on a virtual machine.
  DSTRAIN_CUDA_CHECK(cudaInitDevice(ordinal_, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid),
                     "GPU {}", ordinal_);
  use_gpu(ordinal_);
}

CudaBackend::~CudaBackend() {
  cudaSetDevice(ordinal_);
  cudaDeviceReset();
}

const ops::OpTable& CudaBackend::op_table() const {
  return ops::cuda_op_table();
}

std::unique_ptr<MemoryResource> CudaBackend::pinned(MemoryResource& host) {
  return std::make_unique<PinnedMemory>(host, ordinal_);
}

std::unique_ptr<Stream> CudaBackend::make_stream(StreamUse /*use*/) {
  return std::make_unique<CudaStream>(device(), ordinal_);
}

}  // namespace dstrain::cuda
