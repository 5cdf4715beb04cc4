#pragma once
#include "runtime/tensor/tensor_view.h"

namespace dstrain {

/// The memory of a view of the CPU, for what runs there as a device: its ops, and the collectives
/// of host memory. Nothing else includes this header (tests/tidy): what is no such code does not
/// touch device memory. Throws Error{internal} for a view of another device.
inline HostView host_access(const TensorView& view) {
  DSTRAIN_CHECK(shares_host_memory(view.device().kind), "the host cannot reach this device");
  return HostView(view);
}

}  // namespace dstrain
