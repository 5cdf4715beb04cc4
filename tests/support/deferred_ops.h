#pragma once
#include <set>
#include <string_view>

#include "runtime/ops/op_table.h"

namespace dstrain::test {

/// The ops of deferred devices. Each does what the CPU's does, on the device's thread, and refuses
/// tensors of the host, but for copies.
const ops::OpTable& deferred_op_table();

/// The names of its entries that were called, by this process.
std::set<std::string_view> called_deferred_ops();

/// Makes them known; any number of times.
inline void install_deferred_ops() {
  ops::set_op_table(DeviceKind::cuda, deferred_op_table());
}

}  // namespace dstrain::test
