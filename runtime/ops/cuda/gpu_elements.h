#pragma once
#include "runtime/base/error.h"
#include "runtime/tensor/device_access.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops::gpu {

/// Returns the memory of a view on a GPU; null if it is empty. Throws Error{internal} for host
/// memory.
template <class T>
T* elements(const TensorView& view) {
  if (view.empty()) return nullptr;
  DSTRAIN_CHECK(view.device().kind == DeviceKind::cuda, "an op of a device was given host memory");
  return reinterpret_cast<T*>(device_access(view));
}
inline float* floats(const TensorView& view) {
  return elements<float>(view);
}

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) {
  return (count + by - 1) / by;
}

}  // namespace dstrain::ops::gpu
