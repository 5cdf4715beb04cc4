#include "runtime/device/cuda/cuda_check.h"

#include <string_view>

namespace dstrain::cuda {
namespace {

/// What helps; empty where nothing is known.
std::string_view remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "there is no NVIDIA driver, or one that is too old for the CUDA of this build: see "
             "nvidia-smi";
    case cudaErrorNoDevice:
      return "no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorNoKernelImageForDevice:
      return "this build has no code for this GPU: build it for its compute capability";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorECCUncorrectable:
      return "the GPU can do nothing more for this process";
    default:
      return "";
  }
}

/// "cudaMalloc" of "cudaMalloc(&address, bytes)".
std::string_view function_of(std::string_view call) {
  return call.substr(0, call.find('('));
}

}  // namespace

void fail_call(cudaError_t error, const char* call, const std::string& object) {
  cudaGetLastError();
  const ErrorCode code =
      error == cudaErrorMemoryAllocation ? ErrorCode::out_of_device_memory : ErrorCode::device;
  const std::string_view helps = remedy(error);
  fail(code, "{}: {}: {} ({}){}{}", object, function_of(call), cudaGetErrorString(error),
       cudaGetErrorName(error), helps.empty() ? "" : "; ", helps);
}

void use_gpu(int ordinal) {
  DSTRAIN_CUDA_CHECK(cudaSetDevice(ordinal), "GPU {}", ordinal);
}

}  // namespace dstrain::cuda
