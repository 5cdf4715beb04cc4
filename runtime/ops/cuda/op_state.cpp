#include "runtime/ops/cuda/op_state.h"

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/ops/cuda/product_plan.h"

namespace dstrain::ops::gpu {
namespace {

UniqueHandle<DeviceBytesTraits> allocate(std::size_t bytes, int ordinal) {
  void* address = nullptr;
  cuda::use_gpu(ordinal);
  DSTRAIN_CUDA_CHECK(cudaMalloc(&address, bytes), "{} bytes for the ops of a stream of GPU {}",
                     bytes, ordinal);
  return UniqueHandle<DeviceBytesTraits>(static_cast<std::byte*>(address));
}

}  // namespace

OpState::OpState(cuda::CudaStream& stream)
    : ordinal_(stream.ordinal()),
      words_(allocate(sizeof(DeviceWords), ordinal_)),
      plans_(std::make_unique<ProductPlans>()) {
  DSTRAIN_CUDA_CHECK(cudaMemsetAsync(words_.get(), 0, sizeof(DeviceWords), stream.handle()),
                     "GPU {}", ordinal_);
}

OpState::~OpState() = default;

DeviceWords& OpState::words() const {
  return *reinterpret_cast<DeviceWords*>(words_.get());
}

std::byte* OpState::staging() {
  if (!staging_) staging_ = allocate(static_cast<std::size_t>(staging_bytes()), ordinal_);
  return staging_.get();
}

float* OpState::norm_partials() {
  if (!norm_partials_) norm_partials_ = allocate(sizeof(float) * norm_partial_numel, ordinal_);
  return reinterpret_cast<float*>(norm_partials_.get());
}

cublasLtHandle_t OpState::cublas() {
  if (!cublas_) {
    cublasLtHandle_t handle = nullptr;
    const cublasStatus_t status = cublasLtCreate(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
      fail(ErrorCode::device, "cublasLtCreate: {}", cublasLtGetStatusString(status));
    }
    cublas_ = UniqueHandle<CublasLtTraits>(handle);
  }
  return cublas_.get();
}

}  // namespace dstrain::ops::gpu
