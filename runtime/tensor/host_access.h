#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// Returns the memory of a CPU view, for the code that runs on the CPU as a device: its ops, and
/// the collectives of host memory. No other code includes this header (tests/tidy), so that it
/// cannot touch device memory. Throws Error{internal} for a view of another device.
inline HostView host_access(const TensorView& view) {
  DSTRAIN_CHECK(shares_host_memory(view.device().kind), "the host cannot reach this device");
  return HostView(view);
}

}  // namespace dstrain
