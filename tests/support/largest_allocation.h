#pragma once
#include <cstddef>

namespace dstrain::test {

/// Bytes of the largest single request to operator new since the last call of this. Link
/// largest_allocation.cpp, which takes the operator's place.
std::size_t take_largest_allocation();

}  // namespace dstrain::test
