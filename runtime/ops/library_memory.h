#pragma once
#include <string_view>

#include "runtime/base/units.h"
#include "runtime/device/device.h"

namespace dstrain::ops {

/// What the libraries behind the ops of a kind of device take for themselves, in words: it follows
/// from no shape, so that no plan counts it.
std::string_view library_memory(DeviceKind device);

/// What they may take of the device's own memory from the first step on, in a run on `ranks` ranks,
/// beside the context: more than was measured (docs/gpus.md). A plan leaves so much free.
Bytes library_bytes(DeviceKind device, int ranks);

}  // namespace dstrain::ops
