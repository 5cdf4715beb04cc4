#pragma once
#include <cstdint>

namespace dstrain {

/// The label that does not count in the loss.
inline constexpr std::int32_t ignored_label = -100;

}  // namespace dstrain
