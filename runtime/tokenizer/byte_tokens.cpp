#include "runtime/tokenizer/byte_tokens.h"

#include <charconv>

#include <fmt/format.h>

namespace dstrain::tokenizer {

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  for (std::size_t byte = 0; byte < id_of_.size(); ++byte) {
    id_of_[byte] = vocabulary.id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

bool ByteTokens::append(std::string_view text, std::vector<std::int32_t>& ids) const {
  const std::size_t before = ids.size();
  for (const char byte : text) {
    const std::int32_t id = id_of_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      ids.resize(before);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

std::optional<std::uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc{} || end != token.data() + 5) return std::nullopt;
  return byte;
}

}  // namespace dstrain::tokenizer
