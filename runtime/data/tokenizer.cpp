#include "runtime/data/tokenizer.h"

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

}  // namespace dstrain::data
