#pragma once
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

#include "runtime/base/error.h"

namespace dstrain::cuda {

/// Throws Error{device}, or {out_of_device_memory}, that names the object, the call, CUDA's reason,
/// the driver's report and a remedy. Clears the error if possible.
[[noreturn]] void fail_call(cudaError_t error, const char* call, const std::string& object);

/// Sets the function from which fail_call() gets the driver's report on this process's GPU: "Xid 79
/// (…)", or nothing. Null: none.
void set_driver_report(std::function<std::string()> report);

/// Makes the GPU the current one of the calling thread.
void use_gpu(int ordinal);

}  // namespace dstrain::cuda

/// Wraps a CUDA call that returns cudaError_t; the other arguments, as for fmt, name its object.
#define DSTRAIN_CUDA_CHECK(call, ...)                                            \
  do {                                                                           \
    if (const cudaError_t cuda_error = (call); cuda_error != cudaSuccess) {      \
      ::dstrain::cuda::fail_call(cuda_error, #call, ::fmt::format(__VA_ARGS__)); \
    }                                                                            \
  } while (false)
