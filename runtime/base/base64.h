#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dstrain {

/// The bytes that base64 with padding (RFC 4648) stands for, in its standard or its URL-safe
/// alphabet, or nothing when it is wrong.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace dstrain
