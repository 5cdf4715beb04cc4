#pragma once
#include <string_view>

#include "runtime/base/units.h"
#include "runtime/device/device.h"

namespace dstrain::ops {

/// Describes the memory that the libraries behind the ops of a kind of device use. It does not
/// follow from shapes, so no plan counts it.
std::string_view library_memory(DeviceKind device);

/// Returns an upper bound of the device memory that they use from the first step on, besides the
/// context, in a run on `ranks` ranks: more than measured (docs/gpus.md). A plan leaves this much
/// free.
Bytes library_bytes(DeviceKind device, int ranks);

}  // namespace dstrain::ops
