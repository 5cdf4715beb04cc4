#include "runtime/data/tokenizer.h"

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/data/foreign_format.h"

namespace dstrain::data {

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

void check_utf8(std::span<const std::byte> text, const std::string& path, std::int64_t before) {
  const std::string_view characters(reinterpret_cast<const char*>(text.data()), text.size());
  if (const auto offset = find_invalid_utf8(characters)) {
    fail(ErrorCode::input, "{}: not UTF-8 text: byte {} (0x{:02x}) starts no valid character{}",
         path, before + static_cast<std::int64_t>(*offset),
         std::to_integer<unsigned>(text[*offset]), encoding_remedy(path, characters, *offset));
  }
}

}  // namespace dstrain::data
