#include "runtime/config/json_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"

namespace dstrain::config {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
}

void append_utf8(std::string& into, unsigned code) {
  const auto put = [&](unsigned byte) {
    into += static_cast<char>(byte);
  };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6U);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U);
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18U);
    put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

/// Returns the size of the valid UTF-8 character at the start of `text`; 0: there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                                           : 4;
  if (length == 0 || lead > 0xF4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const unsigned second = length > 1 ? byte(1) : 0;  // overlong, surrogate, above U+10FFFF
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

/// A name in capitals that a script should have replaced by a value: "ZERO_STAGE".
bool is_placeholder(std::string_view word) {
  constexpr std::size_t shortest = 3;
  return word.size() >= shortest && is_upper(word.front()) &&
         std::ranges::all_of(word, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

constexpr std::string_view no_infinity =
    "JSON has no infinity; write a large number, or for gradient_clipping 0, which never clips";
constexpr std::string_view write_the_value = "this is a placeholder; write its value";

std::string_view advice(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> table{{
      {"True", "that is Python; write true"},
      {"TRUE", "write true"},
      {"False", "that is Python; write false"},
      {"FALSE", "write false"},
      {"None", "that is Python; leave the key out, or write null"},
      {"NONE", "write null"},
      {"NULL", "write null"},
      {"NaN", "JSON has no NaN"},
      {"nan", "JSON has no NaN"},
      {"NAN", "JSON has no NaN"},
      {"Infinity", no_infinity},
      {"inf", no_infinity},
      {"INF", no_infinity},
      {"INFINITY", no_infinity},
      {"yes", "write true"},
      {"no", "write false"},
  }};
  for (const auto& [wrong, remedy] : table) {
    if (word == wrong) return remedy;
  }
  if (is_placeholder(word)) return write_the_value;
  return "words need double quotes; HJSON's strings without them are not supported";
}

/// Returns the names in `text` that are in double quotes before a colon, without duplicates.
std::vector<std::string_view> keys_in(std::string_view text) {
  std::vector<std::string_view> keys;
  for (std::size_t quote = text.find('"'); quote != std::string_view::npos;
       quote = text.find('"', quote + 1)) {
    const std::string_view rest = text.substr(quote + 1);
    const auto* const end = std::find_if_not(rest.begin(), rest.end(), is_word_character);
    const std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    const std::string_view after = rest.substr(name.size());
    if (name.empty() || !after.starts_with('"')) continue;
    const std::size_t sign = after.find_first_not_of(" \t", 1);
    if (sign == std::string_view::npos || after[sign] != ':') continue;
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) keys.push_back(name);
  }
  return keys;
}

}  // namespace

JsonScanner::JsonScanner(std::string_view text, Problems& problems)
    : text_(text), problems_(problems) {
  if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
}

char JsonScanner::peek(std::size_t ahead) const {
  return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
}

char JsonScanner::next() {
  const char c = text_[at_++];
  if (c == '\n') {
    ++position_.line;
    position_.column = 1;
  } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80) {  // count characters, not bytes
    ++position_.column;
  }
  return c;
}

bool JsonScanner::pass(char wanted) {
  if (at_end() || peek() != wanted) return false;
  next();
  return true;
}

void JsonScanner::stop(Position where, std::string_view message) const {
  problems_.add(where, "", message);
  problems_.raise();
}

void JsonScanner::unexpected(std::string_view expected) const {
  if (at_end()) {
    stop(position_,
         fmt::format("expected {}, but the file ends{}", expected,
                     hiding_comment_
                         ? fmt::format("; the comment at {}:{} hides the rest of its line",
                                       hiding_comment_->line, hiding_comment_->column)
                         : ""));
  }
  const std::size_t length = utf8_length(text_.substr(at_));
  const char c = peek();
  const bool printable = length > 0 && static_cast<unsigned char>(c) >= 0x20 && c != '\x7F';
  if (!printable) {
    stop(position_, fmt::format("expected {}, got byte 0x{:02x}", expected,
                                static_cast<unsigned>(static_cast<unsigned char>(c))));
  }
  stop(position_, fmt::format("expected {}, got {}", expected, text_.substr(at_, length)));
}

void JsonScanner::skip_line_comment() {
  const Position start = position_;
  const bool behind_something = last_content_line_ == start.line;
  const std::size_t begin = at_;
  while (!at_end() && peek() != '\n') next();
  if (!behind_something) return;
  std::vector<std::string_view> hidden = keys_in(text_.substr(begin, at_ - begin));
  if (hidden.empty()) return;
  if (!hiding_comment_) hiding_comment_ = start;
  constexpr std::size_t named = 3;
  const std::size_t more = hidden.size() - std::min(named, hidden.size());
  hidden.resize(hidden.size() - more);
  problems_.warn(
      start, "",
      fmt::format("this comment runs to the end of its line and hides \"{}\"{}; if that "
                  "is not meant, break the line before",
                  fmt::join(hidden, "\", \""), more > 0 ? fmt::format(" and {} more", more) : ""));
}

void JsonScanner::skip_block() {
  const Position start = position_;
  next();
  next();
  while (!(peek() == '*' && peek(1) == '/')) {
    if (at_end()) stop(start, "this /* comment has no end");
    next();
  }
  next();
  next();
}

bool JsonScanner::skip_blanks() {
  const int line = position_.line;
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      next();
    } else if (c == '#' || (c == '/' && peek(1) == '/')) {
      skip_line_comment();
    } else if (c == '/' && peek(1) == '*') {
      skip_block();
    } else {
      last_content_line_ = position_.line;
      break;
    }
  }
  return position_.line > line;
}

std::string JsonScanner::bare_key() {
  const Position place = position_;
  const std::size_t start = at_;
  while (is_word_character(peek())) next();
  const std::string_view word = text_.substr(start, at_ - start);
  if (const std::size_t sign = text_.find_first_not_of(" \t", at_);
      sign != std::string_view::npos && text_[sign] == '=') {
    stop(place, "this is Python; a configuration is JSON, from { to }, with true, false, null");
  }
  return std::string(word);
}

void JsonScanner::copy_character(std::string& into) {
  const std::size_t length = utf8_length(text_.substr(at_));
  if (length == 0) stop(position_, "this is not UTF-8 text");
  for (std::size_t i = 0; i < length; ++i) into += next();
}

unsigned JsonScanner::code_unit() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = peek();
    const std::string_view digits = "0123456789abcdefABCDEF";
    const std::size_t digit = at_end() ? std::string_view::npos : digits.find(c);
    if (digit == std::string_view::npos) unexpected("four hexadecimal digits after \\u");
    code = code * 16 + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
    next();
  }
  return code;
}

void JsonScanner::escape(std::string& into) {
  const Position start = position_;
  next();  // the backslash
  constexpr std::string_view names = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  const std::size_t simple = at_end() ? std::string_view::npos : names.find(peek());
  if (simple != std::string_view::npos) {
    next();
    into += meanings[simple];
    return;
  }
  if (!pass('u')) stop(start, "JSON has no such escape in a string");
  unsigned code = code_unit();
  if (code >= 0xD800 && code < 0xDC00) {
    if (!pass('\\') || !pass('u')) stop(start, "the second half of this \\u pair is missing");
    const unsigned low = code_unit();
    if (low < 0xDC00 || low > 0xDFFF) stop(start, "the second half of this \\u pair is wrong");
    code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code <= 0xDFFF) {
    stop(start, "the first half of this \\u pair is missing");
  }
  append_utf8(into, code);
}

std::string JsonScanner::string() {
  const Position start = position_;
  next();  // the opening quote
  std::string result;
  while (!pass('"')) {
    if (at_end() || peek() == '\n') stop(start, "this string has no closing quote");
    if (static_cast<unsigned char>(peek()) < 0x20) unexpected("no control character in a string");
    if (peek() == '\\') {
      escape(result);
    } else {
      copy_character(result);
    }
  }
  return result;
}

JsonValue JsonScanner::number() {
  JsonValue value;
  value.kind = JsonValue::Kind::number;
  value.position = position_;
  const std::size_t start = at_;
  const auto digits = [&](std::string_view where) {
    if (!is_digit(peek())) unexpected(fmt::format("a digit {}", where));
    while (is_digit(peek())) next();
  };
  pass('-');
  if (peek() == '0' && is_digit(peek(1))) stop(position_, "a number has no leading zeros");
  digits("of a number");
  if (pass('.')) digits("after the point");
  if (peek() == 'e' || peek() == 'E') {
    next();
    if (!pass('+')) pass('-');
    digits("of the exponent");
  }
  value.text = std::string(text_.substr(start, at_ - start));
  const char* const end = value.text.data() + value.text.size();
  const auto [stopped, error] = std::from_chars(value.text.data(), end, value.number);
  if (error != std::errc{} || stopped != end) {
    stop(value.position, fmt::format("{} is out of the range of numbers", value.text));
  }
  std::int64_t whole = 0;
  if (const auto [last, bad] = std::from_chars(value.text.data(), end, whole);
      bad == std::errc{} && last == end) {
    value.integer = whole;
  } else if (std::abs(value.number) < 9.2e18 && std::trunc(value.number) == value.number) {
    value.integer = static_cast<std::int64_t>(value.number);
  }
  return value;
}

void JsonScanner::refuse_placeholder() const {
  constexpr std::size_t shown = 40;
  const std::string_view rest = text_.substr(at_);
  const bool braces = rest.starts_with("${");
  const std::size_t end =
      braces ? rest.find('}') : rest.find_first_of(" \t\r\n,]}\"#") - 1;  // its last character
  const std::string_view name = rest.substr(0, end == rest.npos ? end : end + 1);
  stop(position_, fmt::format("{}: {}", printable(name, shown), write_the_value));
}

JsonValue JsonScanner::word() {
  JsonValue value;
  value.position = position_;
  const std::size_t start = at_;
  while (is_word_character(peek())) next();
  const std::string_view word = text_.substr(start, at_ - start);
  if (word == "true" || word == "false") {
    value.kind = JsonValue::Kind::boolean;
    value.boolean = word == "true";
  } else if (word != "null") {
    stop(value.position, fmt::format("{}: {}", word.substr(0, 40), advice(word)));
  }
  return value;
}

}  // namespace dstrain::config
