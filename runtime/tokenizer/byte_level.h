#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// GPT-2's alphabet (github.com/openai/gpt-2, src/encoder.py): one printable character per byte, to
/// write tokens of bytes as text. 33-126, 161-172 and 174-255 represent themselves; the other 68
/// bytes are U+0100 and up, in order.
char32_t byte_level_character(std::uint8_t byte);

/// Returns the bytes that a text in this alphabet represents; nothing if it has other characters.
std::optional<std::string> bytes_of_byte_level(std::string_view text);

}  // namespace dstrain::tokenizer
