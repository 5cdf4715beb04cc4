#pragma once
#include <cstdint>

// Also a public header of the library, dstrain/label.h: standard library only.
namespace dstrain {

/// The label that does not count in the loss.
inline constexpr std::int32_t ignored_label = -100;

}  // namespace dstrain
