#pragma once
#include <string_view>

#include "runtime/device/device.h"

namespace dstrain::ops {

/// What the libraries behind the ops of a kind of device take for themselves, in words: it follows
/// from no shape, so that no plan counts it.
std::string_view library_memory(DeviceKind device);

}  // namespace dstrain::ops
