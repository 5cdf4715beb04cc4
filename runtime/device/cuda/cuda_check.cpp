#include "runtime/device/cuda/cuda_check.h"

#include <mutex>
#include <string_view>
#include <utility>

namespace dstrain::cuda {
namespace {

/// Returns a remedy; empty if none is known.
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

struct DriverReport {
  std::mutex mutex;
  std::function<std::string()> ask;  ///< guarded
};
DriverReport& driver_report() {
  static auto& of_process = *new DriverReport;  // a thread may fail while the process ends
  return of_process;
}

}  // namespace

void set_driver_report(std::function<std::string()> report) {
  const std::lock_guard lock(driver_report().mutex);
  driver_report().ask = std::move(report);
}

void fail_call(cudaError_t error, const char* call, const std::string& object) {
  cudaGetLastError();
  const ErrorCode code =
      error == cudaErrorMemoryAllocation ? ErrorCode::out_of_device_memory : ErrorCode::device;
  std::string reported;
  if (code == ErrorCode::device) {
    const std::lock_guard lock(driver_report().mutex);
    if (driver_report().ask) reported = driver_report().ask();
  }
  const std::string_view helps = remedy(error);
  fail(code, "{}: {}: {} ({}){}{}{}{}", object, function_of(call), cudaGetErrorString(error),
       cudaGetErrorName(error), reported.empty() ? "" : "; the driver reports ", reported,
       helps.empty() ? "" : "; ", helps);
}

void use_gpu(int ordinal) {
  DSTRAIN_CUDA_CHECK(cudaSetDevice(ordinal), "GPU {}", ordinal);
}

}  // namespace dstrain::cuda
