#pragma once
#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"

namespace dstrain {

/// Returns the stream of a view, for code that launches on the CPU as a device: its ops, and the
/// collectives of host memory. No other code includes this header (tests/tidy), so that it cannot
/// launch. Throws Error{internal} for a stream of another device.
inline CpuStream& cpu_stream(StreamView view) {
  DSTRAIN_CHECK(view.device().kind == DeviceKind::cpu, "the stream is of another device");
  return static_cast<CpuStream&>(view.stream());
}

}  // namespace dstrain
