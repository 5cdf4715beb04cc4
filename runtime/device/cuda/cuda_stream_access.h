#pragma once
#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda_stream.h"

namespace dstrain::cuda {

/// Returns the stream of a view, for code that launches on GPUs. Throws Error{internal} for a
/// stream of another device.
inline CudaStream& cuda_stream(StreamView view) {
  DSTRAIN_CHECK(view.device().kind == DeviceKind::cuda, "the stream is of another device");
  return static_cast<CudaStream&>(view.stream());
}

}  // namespace dstrain::cuda
