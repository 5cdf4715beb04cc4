#include "runtime/base/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace dstrain {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

unsigned byte_at(std::string_view text, std::size_t offset) {
  return static_cast<unsigned char>(text[offset]);
}

/// The valid values of the second byte of a character: Unicode, table 3-7.
struct ByteRange {
  unsigned first = 0x80;
  unsigned last = 0xBF;
};

ByteRange second_byte_of(unsigned lead) {
  switch (lead) {
    case 0xE0:
      return {.first = 0xA0};
    case 0xED:
      return {.last = 0x9F};
    case 0xF0:
      return {.first = 0x90};
    case 0xF4:
      return {.last = 0x8F};
    default:
      return {};
  }
}

std::size_t size_of(unsigned lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

/// The character at the start of `text`, as far as it is there.
struct Prefix {
  std::size_t size = 0;
  bool whole = false;
};

Prefix prefix_of(std::string_view text) {
  const std::size_t size = size_of(byte_at(text, 0));
  if (size < 2) return {.size = 1, .whole = size == 1};
  ByteRange allowed = second_byte_of(byte_at(text, 0));
  for (std::size_t i = 1; i < size; ++i) {
    const bool fits =
        i < text.size() && byte_at(text, i) >= allowed.first && byte_at(text, i) <= allowed.last;
    if (!fits) return {.size = i, .whole = false};
    allowed = {};
  }
  return {.size = size, .whole = true};
}

/// Returns the number of valid bytes from `offset` on.
std::size_t valid_size(std::string_view text, std::size_t offset) {
  std::size_t end = offset;
  while (end < text.size()) {
    std::uint64_t eight = 0;
    if (text.size() - end >= sizeof eight) {
      std::memcpy(&eight, text.data() + end, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {  // eight ASCII characters at once
        end += sizeof eight;
        continue;
      }
    }
    const Prefix prefix = prefix_of(text.substr(end, 4));
    if (!prefix.whole) break;
    end += prefix.size;
  }
  return end - offset;
}

}  // namespace

Character first_character(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return {.code = lead, .size = 1};
  const std::size_t size = size_of(lead);
  char32_t code = lead & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte_at(text, i) & 0x3FU);
  return {.code = code, .size = size};
}

Character first_of_any(std::string_view text) {
  constexpr char32_t replacement_code = 0xFFFD;
  const Prefix prefix = prefix_of(text);
  if (prefix.whole) return first_character(text);
  return {.code = replacement_code, .size = prefix.size};
}

Character last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (byte_at(text, begin) & 0xC0U) == 0x80) --begin;
  return first_character(text.substr(begin));
}

std::size_t incomplete_size(std::string_view text) {
  for (std::size_t size = 1; size < 4 && size <= text.size(); ++size) {
    const std::string_view tail = text.substr(text.size() - size);
    if ((byte_at(tail, 0) & 0xC0U) == 0x80) continue;
    const Prefix prefix = prefix_of(tail);
    return prefix.size == size && size < size_of(byte_at(tail, 0)) ? size : 0;
  }
  return 0;
}

void append_utf8(std::string& text, char32_t code) {
  const auto push = [&](char32_t byte) {
    text.push_back(static_cast<char>(byte));
  };
  const auto push_tail = [&](int shift) {
    push(0x80 | (code >> shift & 0x3F));
  };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0 | code >> 6);
    push_tail(0);
  } else if (code < 0x10000) {
    push(0xE0 | code >> 12);
    push_tail(6);
    push_tail(0);
  } else {
    push(0xF0 | code >> 18);
    push_tail(12);
    push_tail(6);
    push_tail(0);
  }
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  const std::size_t valid = valid_size(text, 0);
  return valid == text.size() ? std::nullopt : std::optional(valid);
}

std::string_view valid_utf8(std::string_view text, std::string& storage) {
  std::size_t offset = valid_size(text, 0);
  if (offset == text.size()) return text;
  storage.assign(text.substr(0, offset));
  while (offset < text.size()) {
    storage += replacement;
    offset += prefix_of(text.substr(offset, 4)).size;
    const std::size_t valid = valid_size(text, offset);
    storage += text.substr(offset, valid);
    offset += valid;
  }
  return storage;
}

}  // namespace dstrain
