#pragma once

namespace dstrain::test {

/// Makes the ops of deferred devices known; any number of times. Each does what the CPU's does, on
/// the device's thread, and refuses tensors of the host, but for copies.
void install_deferred_ops();

}  // namespace dstrain::test
