#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// Where a view begins, for the ops of its device, which alone know what the address means. Nothing
/// else includes this header (tests/tidy).
inline std::byte* device_access(const TensorView& view) {
  return view.address_;
}

}  // namespace dstrain
