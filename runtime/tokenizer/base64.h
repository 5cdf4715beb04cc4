#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// The bytes that base64 with padding (RFC 4648, section 4) stands for, or nothing when it is
/// wrong.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace dstrain::tokenizer
