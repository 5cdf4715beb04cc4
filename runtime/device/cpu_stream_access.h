#pragma once
#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"

namespace dstrain {

/// The stream behind a view, for what launches on the CPU as a device: its ops, and the collectives
/// of host memory. Nothing else includes this header (tests/tidy): what is no such code launches
/// nothing of its own. Throws Error{internal} for a stream of another device.
inline CpuStream& cpu_stream(StreamView view) {
  DSTRAIN_CHECK(view.device().kind == DeviceKind::cpu, "the stream is of another device");
  return static_cast<CpuStream&>(view.stream());
}

}  // namespace dstrain
