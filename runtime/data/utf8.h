#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace dstrain::data {

/// Offset of the first byte that begins no valid UTF-8 character (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF), or nothing when all of it is valid.
std::optional<std::size_t> find_invalid_utf8(std::span<const std::byte> text);

}  // namespace dstrain::data
