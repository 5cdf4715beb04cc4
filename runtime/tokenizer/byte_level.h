#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// GPT-2's alphabet (github.com/openai/gpt-2, src/encoder.py): a printable character for every
/// byte, so that tokens of bytes can be written as text. 33-126, 161-172 and 174-255 stand for
/// themselves, the other 68 bytes are U+0100 and up, in order.
char32_t byte_level_character(std::uint8_t byte);

/// The bytes that a text of that alphabet stands for, or nothing when it has another character.
std::optional<std::string> bytes_of_byte_level(std::string_view text);

}  // namespace dstrain::tokenizer
