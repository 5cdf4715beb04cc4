#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// Returns the address of a view, for the ops of its device, which alone can interpret it. No other
/// code includes this header (tests/tidy).
inline std::byte* device_access(const TensorView& view) {
  return view.address_;
}

}  // namespace dstrain
