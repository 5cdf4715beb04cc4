#include "runtime/tokenizer/precompiled.h"

#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/grapheme.h"

namespace dstrain::tokenizer {
namespace {

static_assert(std::endian::native == std::endian::little);

/// An element of the double array.
struct Unit {
  std::uint32_t bits = 0;

  [[nodiscard]] bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  [[nodiscard]] std::uint32_t value() const { return bits & 0x7FFFFFFFU; }
  [[nodiscard]] std::uint32_t label() const { return bits & 0x800000FFU; }
  [[nodiscard]] std::uint32_t offset() const { return bits >> 10 << ((bits & 0x200U) >> 6); }
};

}  // namespace

Precompiled::Precompiled(std::string_view charsmap, const std::string& place) {
  std::uint32_t bytes = 0;
  if (charsmap.size() >= sizeof bytes) std::memcpy(&bytes, charsmap.data(), sizeof bytes);
  charsmap.remove_prefix(std::min(charsmap.size(), sizeof bytes));
  if (bytes == 0 || bytes % sizeof(std::uint32_t) != 0 || bytes > charsmap.size()) {
    fail(ErrorCode::input, "{}: is no precompiled table of SentencePiece", place);
  }
  units_.resize(bytes / sizeof(std::uint32_t));
  std::memcpy(units_.data(), charsmap.data(), bytes);
  const std::string_view rest = charsmap.substr(bytes);
  std::string repaired;
  if (valid_utf8(rest, repaired).data() != rest.data()) {
    fail(ErrorCode::input, "{}: its replacements are not UTF-8", place);
  }
  replacements_ = rest;
  for (std::size_t code = 0; code < keeps_ascii_.size(); ++code) {
    const auto character = static_cast<char>(code);
    keeps_ascii_[code] = character != '\r' && !replacement_of({&character, 1});
  }
}

std::optional<std::string_view> Precompiled::replacement_of(std::string_view text) const {
  std::size_t node = Unit{units_.front()}.offset();
  for (const char letter : text) {
    const std::uint32_t byte = static_cast<unsigned char>(letter);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || Unit{units_[node]}.label() != byte) break;
    const Unit unit{units_[node]};
    node ^= unit.offset();
    if (!unit.has_leaf()) continue;
    if (node >= units_.size()) break;
    const std::size_t begin = Unit{units_[node]}.value();
    if (begin >= replacements_.size()) break;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    if ((static_cast<unsigned char>(rest.front()) & 0xC0U) == 0x80) break;  // a continuation byte
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

bool Precompiled::begins_entry(char32_t code) const {
  std::string character;
  append_utf8(character, code);
  std::size_t node = Unit{units_.front()}.offset();
  for (const char letter : character) {
    const std::uint32_t byte = static_cast<unsigned char>(letter);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || Unit{units_[node]}.label() != byte) return false;
    node ^= Unit{units_[node]}.offset();
  }
  return true;
}

void Precompiled::append_normalized(std::string_view text,
                                    std::string& result,
                                    FunctionRef<void()> on_grapheme) const {
  const auto is_ascii = [&](std::size_t at) {
    return static_cast<unsigned char>(text[at]) < 0x80;
  };
  std::size_t at = 0;
  while (at < text.size()) {
    // Before another ASCII character, an ASCII character is a grapheme, except \r.
    const bool alone = is_ascii(at) && (at + 1 == text.size() || is_ascii(at + 1));
    if (alone && keeps_ascii_[static_cast<unsigned char>(text[at])]) {
      result.push_back(text[at++]);
      continue;
    }
    const std::size_t size = grapheme_size(text.substr(at));
    append_grapheme(text.substr(at, size), result);
    on_grapheme();
    at += size;
  }
}

void Precompiled::append_grapheme(std::string_view grapheme, std::string& result) const {
  constexpr std::size_t replaced_whole_below = 6;
  if (grapheme.size() < replaced_whole_below) {
    if (const auto replacement = replacement_of(grapheme)) {
      result += *replacement;
      return;
    }
  }
  while (!grapheme.empty()) {
    const std::string_view character = grapheme.substr(0, first_character(grapheme).size);
    result += replacement_of(character).value_or(character);
    grapheme.remove_prefix(character.size());
  }
}

}  // namespace dstrain::tokenizer
