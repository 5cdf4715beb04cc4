#pragma once
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

#include "runtime/base/error.h"

namespace dstrain::cuda {

/// Throws Error{device}, or {out_of_device_memory}, that names the object, the call, CUDA's reason,
/// what the driver reports and what helps. Clears the error where it can be cleared.
[[noreturn]] void fail_call(cudaError_t error, const char* call, const std::string& object);

/// Who tells fail_call() what the driver reports of this process's GPU: "Xid 79 (…)", or nothing.
/// Null: nobody.
void set_driver_report(std::function<std::string()> report);

/// Makes the GPU the one that calls of this thread are about.
void use_gpu(int ordinal);

}  // namespace dstrain::cuda

/// Wraps each call of CUDA's that returns cudaError_t; the rest, as for fmt, names its object.
#define DSTRAIN_CUDA_CHECK(call, ...)                                            \
  do {                                                                           \
    if (const cudaError_t cuda_error = (call); cuda_error != cudaSuccess) {      \
      ::dstrain::cuda::fail_call(cuda_error, #call, ::fmt::format(__VA_ARGS__)); \
    }                                                                            \
  } while (false)
