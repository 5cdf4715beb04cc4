#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dstrain {

/// U+FEFF, which some programs write at the start of a file.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// A code point and the number of bytes that it takes in UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t size = 0;
};

/// Returns the character at the start of `text`, which is valid UTF-8 and not empty.
Character first_character(std::string_view text);

/// The same for any text that is not empty: for a broken character, U+FFFD with the size of its
/// maximal part.
Character first_of_any(std::string_view text);

/// Returns the last character of `text`, which is valid UTF-8 and not empty.
Character last_character(std::string_view text);

/// Appends the UTF-8 of a Unicode scalar value.
void append_utf8(std::string& text, char32_t code);

/// Returns how many bytes at the end of `text` begin a valid character that more bytes may
/// complete.
std::size_t incomplete_size(std::string_view text);

/// Returns `text` with ASCII letters in lower case.
std::string lower_case(std::string_view text);

/// Returns the offset of the first byte that does not begin a valid UTF-8 character (RFC 3629: no
/// overlong forms, no surrogates, nothing above U+10FFFF), or nothing if all of it is valid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Returns `text` if it is valid UTF-8. Otherwise a copy in `storage` in which each maximal part of
/// a broken character is one U+FFFD, as in Python's bytes.decode(errors="replace").
std::string_view valid_utf8(std::string_view text, std::string& storage);

}  // namespace dstrain
