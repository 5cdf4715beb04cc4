#include "runtime/tokenizer/word_cut.h"

#include <algorithm>
#include <string>

#include "runtime/base/utf8.h"
#include "runtime/tokenizer/unicode.h"

namespace dstrain::tokenizer {
namespace {

bool is_ascii_space(char byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool ends_with_whitespace(std::string_view text) {
  if (static_cast<unsigned char>(text.back()) < 0x80) return is_ascii_space(text.back());
  constexpr std::size_t character_bytes_max = 4;
  std::string storage;
  text.remove_prefix(text.size() - std::min(text.size(), character_bytes_max));
  return is_whitespace(last_character(valid_utf8(text, storage)).code);
}

}  // namespace

std::size_t last_word_cut(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 1;) {
    if (is_ascii_space(text[at]) && !ends_with_whitespace(text.substr(0, at))) return at;
  }
  return 0;
}

}  // namespace dstrain::tokenizer
