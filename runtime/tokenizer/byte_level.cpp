#include "runtime/tokenizer/byte_level.h"

#include <array>

#include "runtime/base/utf8.h"

namespace dstrain::tokenizer {
namespace {

constexpr char32_t first_substitute = 0x100;
constexpr std::size_t substitutes = 68;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Alphabet {
  std::array<char32_t, 256> character_of{};
  std::array<std::int16_t, first_substitute + substitutes> byte_of{};  ///< -1: none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  char32_t next = first_substitute;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = stands_for_itself(byte) ? byte : next++;
    alphabet.character_of[byte] = character;
    alphabet.byte_of[character] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

}  // namespace

char32_t byte_level_character(std::uint8_t byte) {
  return alphabet.character_of[byte];
}

std::optional<std::string> bytes_of_byte_level(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.code >= alphabet.byte_of.size() || alphabet.byte_of[character.code] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(alphabet.byte_of[character.code]));
    text.remove_prefix(character.size);
  }
  return bytes;
}

}  // namespace dstrain::tokenizer
