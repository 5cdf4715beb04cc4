#include "runtime/data/tokenizer.h"

#include <cstring>

#include "runtime/base/error.h"

namespace dstrain::data {
namespace {

/// Bytes of the valid character at the start of `text`, or 0.
std::size_t character_size(std::span<const std::byte> text) {
  const auto byte = [&](std::size_t i) {
    return std::to_integer<unsigned>(text[i]);
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) > 0x9F;
  const bool too_large = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : size;
}

}  // namespace

std::vector<std::int32_t> encode_bytes(std::string_view text) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

std::string decode_bytes(std::span<const std::int32_t> tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < byte_vocabulary) {
      text.push_back(static_cast<char>(token));
    } else {
      text += "\xEF\xBF\xBD";
    }
  }
  return text;
}

std::optional<std::size_t> find_invalid_utf8(std::span<const std::byte> text) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - offset >= sizeof eight) {
      std::memcpy(&eight, text.data() + offset, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {  // eight ASCII characters at once
        offset += sizeof eight;
        continue;
      }
    }
    const std::size_t size = character_size(text.subspan(offset));
    if (size == 0) return offset;
    offset += size;
  }
  return std::nullopt;
}

void check_utf8(std::span<const std::byte> text, const std::string& path) {
  if (const auto offset = find_invalid_utf8(text)) {
    fail(ErrorCode::input, "{}: not UTF-8 text: byte {} (0x{:02x}) starts no valid character", path,
         *offset, std::to_integer<unsigned>(text[*offset]));
  }
}

}  // namespace dstrain::data
