#pragma once
#include <map>
#include <string>

namespace dstrain::test {

/// The bytes that a block of each kernel shares, at most, by the kernel's name as C++ writes it:
/// of those that what stands in for a GPU starts when all ops run, in every dtype and at the sizes
/// of heads that attention is cut for. Opens the device.
std::map<std::string, int> launched_kernels();

}  // namespace dstrain::test
