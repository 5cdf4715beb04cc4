#include "runtime/data/jinja/python_text.h"

#include <algorithm>
#include <array>
#include <clocale>
#include <cwctype>
#include <optional>
#include <utility>

#include "runtime/base/utf8.h"

namespace dstrain::jinja {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

/// The C library's tables for all of Unicode, whatever the locale of the process.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (locale == nullptr) refuse("the C library has no locale C.UTF-8, which tells upper case");
  return locale;
}

using Range = std::pair<char32_t, char32_t>;

template <std::size_t size>
bool is_in(const std::array<Range, size>& ranges, char32_t code) {
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return range.first <= code && code <= range.second; });
}

/// The characters whose upper case is several characters (Unicode's SpecialCasing.txt), which the C
/// library does not know.
constexpr std::array<Range, 27> upper_case_is_long{
    {{0xdf, 0xdf},     {0x149, 0x149},   {0x1f0, 0x1f0},   {0x390, 0x390},   {0x3b0, 0x3b0},
     {0x587, 0x587},   {0x1e96, 0x1e9a}, {0x1f50, 0x1f50}, {0x1f52, 0x1f52}, {0x1f54, 0x1f54},
     {0x1f56, 0x1f56}, {0x1f80, 0x1faf}, {0x1fb2, 0x1fb4}, {0x1fb6, 0x1fb7}, {0x1fbc, 0x1fbc},
     {0x1fc2, 0x1fc4}, {0x1fc6, 0x1fc7}, {0x1fcc, 0x1fcc}, {0x1fd2, 0x1fd3}, {0x1fd6, 0x1fd7},
     {0x1fe2, 0x1fe4}, {0x1fe6, 0x1fe7}, {0x1ff2, 0x1ff4}, {0x1ff6, 0x1ff7}, {0x1ffc, 0x1ffc},
     {0xfb00, 0xfb06}, {0xfb13, 0xfb17}}};

/// The characters that the C library calls printable and Python does not: format characters, wide
/// spaces, private use.
constexpr std::array<Range, 27> printable_only_in_c{
    {{0xa0, 0xa0},       {0xad, 0xad},       {0x600, 0x605},      {0x61c, 0x61c},
     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},      {0x8e2, 0x8e2},
     {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},    {0x202a, 0x202f},
     {0x205f, 0x2064},   {0x2066, 0x206f},   {0x3000, 0x3000},    {0xe000, 0xf8ff},
     {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},  {0x110cd, 0x110cd},
     {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},  {0xe0001, 0xe0001},
     {0xe0020, 0xe007f}, {0xf0000, 0xffffd}, {0x100000, 0x10fffd}}};

void append_upper(std::string& out, char32_t code) {
  if (code == 0xdf) {
    out += "SS";
  } else if (is_in(upper_case_is_long, code)) {
    std::string character;
    append_utf8(character, code);
    refuse("the upper case of '", character, "' is several characters, which is not implemented");
  } else {
    append_utf8(out,
                static_cast<char32_t>(towupper_l(static_cast<wint_t>(code), unicode_locale())));
  }
}

/// The first character of a word in upper case, or in its own form: U+01C5 for U+01C6.
void append_title(std::string& out, char32_t code) {
  if (code == 0xdf) {
    out += "Ss";
  } else if (is_in(upper_case_is_long, code)) {
    append_upper(out, code);
  } else {
    const wctrans_t to_title = wctrans_l("totitle", unicode_locale());
    append_utf8(out, static_cast<char32_t>(
                         towctrans_l(static_cast<wint_t>(code), to_title, unicode_locale())));
  }
}

bool is_cased(char32_t code) {
  const auto c = static_cast<wint_t>(code);
  return static_cast<char32_t>(towupper_l(c, unicode_locale())) != code ||
         static_cast<char32_t>(towlower_l(c, unicode_locale())) != code || code == 0xdf;
}

bool starts_as(std::string_view text, std::string_view set, std::size_t size) {
  const std::string_view character = text.substr(0, size);
  if (set.empty()) return is_space(character);
  for (std::size_t at = set.find(character); at != std::string_view::npos;
       at = set.find(character, at + 1)) {
    if (!continues(set[at])) return true;
  }
  return false;
}

}  // namespace

std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !continues(byte); }));
}

std::size_t byte_of(std::string_view text, std::size_t index) {
  if (index >= text.size()) return text.size();
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (continues(text[at])) continue;
    if (index == 0) break;
    --index;
  }
  return at;
}

std::size_t first_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && continues(text[size])) ++size;
  return size;
}

std::size_t last_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && continues(text[text.size() - size])) ++size;
  return size;
}

std::vector<Text> characters(const Text& text) {
  std::vector<Text> all;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const std::size_t size = first_size(std::string_view(text.bytes).substr(at));
    all.push_back(text.part(at, at + size));
    all.back().markup = false;
    at += size;
  }
  return all;
}

Text character(const Text& text, std::size_t index) {
  const std::size_t begin = byte_of(text.bytes, index);
  return text.part(begin, begin + first_size(std::string_view(text.bytes).substr(begin)));
}

Text sliced(const Text& text, std::int64_t from, std::int64_t to, std::int64_t step) {
  if (step == 1) {
    if (to <= from) return text.part(0, 0);
    const std::size_t begin = byte_of(text.bytes, static_cast<std::size_t>(from));
    const std::string_view rest = std::string_view(text.bytes).substr(begin);
    return text.part(begin, begin + byte_of(rest, static_cast<std::size_t>(to - from)));
  }
  const std::vector<Text> all = characters(text);
  Text picked;
  for (std::int64_t i = from; step > 0 ? i < to : i > to; i += step) {
    picked.append(all.at(static_cast<std::size_t>(i)));
  }
  picked.markup = text.markup;
  return picked;
}

bool is_space(std::string_view character) {
  if (character.size() == 1) {
    const char c = character.front();
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
  }
  static constexpr std::array<std::string_view, 19> wide{
      "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
      "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
      "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
      "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
  return std::ranges::find(wide, character) != wide.end();
}

Text strip(const Text& text, std::string_view characters, Ends ends) {
  const std::string_view bytes = text.bytes;
  std::size_t begin = 0;
  std::size_t end = bytes.size();
  while (ends != Ends::right && begin < end) {
    const std::size_t size = first_size(bytes.substr(begin, end - begin));
    if (!starts_as(bytes.substr(begin), characters, size)) break;
    begin += size;
  }
  while (ends != Ends::left && begin < end) {
    const std::size_t size = last_size(bytes.substr(begin, end - begin));
    if (!starts_as(bytes.substr(end - size), characters, size)) break;
    end -= size;
  }
  return text.part(begin, end);
}

std::vector<Text> split(const Text& text, std::string_view separator, std::int64_t most) {
  std::vector<Text> parts;
  std::size_t begin = 0;
  while (most < 0 || std::ssize(parts) < most) {
    const std::size_t at = text.bytes.find(separator, begin);
    if (at == std::string::npos) break;
    parts.push_back(text.part(begin, at));
    begin = at + separator.size();
  }
  parts.push_back(text.part(begin, text.bytes.size()));
  return parts;
}

std::vector<Text> split_right(const Text& text, std::string_view separator, std::int64_t most) {
  std::vector<Text> parts;
  std::size_t end = text.bytes.size();
  while ((most < 0 || std::ssize(parts) < most) && end >= separator.size()) {
    const std::size_t at = text.bytes.rfind(separator, end - separator.size());
    if (at == std::string::npos) break;
    parts.push_back(text.part(at + separator.size(), end));
    end = at;
  }
  parts.push_back(text.part(0, end));
  std::ranges::reverse(parts);
  return parts;
}

std::vector<Text> split_words(const Text& text, std::int64_t most) {
  std::vector<Text> parts;
  const std::string_view bytes = text.bytes;
  std::size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < bytes.size()) {
      const std::size_t size = first_size(bytes.substr(at));
      if (is_space(bytes.substr(at, size)) != spaces) break;
      at += size;
    }
    return at;
  };
  while (skip(true) < bytes.size()) {
    const std::size_t begin = at;
    if (most >= 0 && std::ssize(parts) == most) {
      parts.push_back(text.part(begin, bytes.size()));
      break;
    }
    parts.push_back(text.part(begin, skip(false)));
  }
  return parts;
}

std::vector<Text> split_words_right(const Text& text, std::int64_t most) {
  std::vector<Text> parts;
  const std::string_view bytes = text.bytes;
  std::size_t end = bytes.size();
  const auto skip = [&](bool spaces) {
    while (end > 0) {
      const std::size_t size = last_size(bytes.substr(0, end));
      if (is_space(bytes.substr(end - size, size)) != spaces) break;
      end -= size;
    }
    return end;
  };
  while (skip(true) > 0) {
    const std::size_t word_end = end;
    const bool is_rest = most >= 0 && std::ssize(parts) == most;
    parts.push_back(text.part(is_rest ? 0 : skip(false), word_end));
    if (is_rest) break;
  }
  std::ranges::reverse(parts);
  return parts;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  static constexpr std::array<std::string_view, 11> line_ends{
      "\r\n", "\n",   "\r",       "\v",           "\f",          "\x1c",
      "\x1d", "\x1e", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};
  std::vector<Text> lines;
  const std::string_view bytes = text.bytes;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto* const end = std::ranges::find_if(
        line_ends, [&](std::string_view e) { return bytes.substr(at).starts_with(e); });
    if (end == line_ends.end()) {
      ++at;
      continue;
    }
    lines.push_back(text.part(begin, keep_ends ? at + end->size() : at));
    begin = at += end->size();
  }
  if (begin < bytes.size()) lines.push_back(text.part(begin, bytes.size()));
  return lines;
}

Text replace(const Text& text, const Text& old, const Text& fresh, std::int64_t most) {
  Text out;
  out.markup = text.markup;
  std::size_t begin = 0;
  std::size_t search = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    const std::size_t at = text.bytes.find(old.bytes, search);
    if (at == std::string::npos) break;
    out.append(text.part(begin, at));
    out.append(fresh);
    begin = at + old.bytes.size();
    search = begin;
    if (old.bytes.empty()) {  // before each character, and at the end
      if (at == text.bytes.size()) break;
      search = at + first_size(std::string_view(text.bytes).substr(at));
    }
  }
  out.append(text.part(begin, text.bytes.size()));
  return out;
}

std::string upper(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, size] = first_of_any(text.substr(at));
    append_upper(out, code);
    at += size;
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, size] = first_of_any(text.substr(at));
    at += size;
    const bool word_goes_on = at < text.size() && is_cased(first_of_any(text.substr(at)).code);
    if (code == 0x130) {
      out += "i\xCC\x87";
    } else if (code == 0x3a3 && in_word && !word_goes_on) {
      append_utf8(out, 0x3c2);  // the sigma that ends a word
    } else {
      append_utf8(out,
                  static_cast<char32_t>(towlower_l(static_cast<wint_t>(code), unicode_locale())));
    }
    in_word = is_cased(code);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const auto [code, size] = first_of_any(text);
  std::string out;
  append_title(out, code);
  // The rest is mapped with its beginning, which decides the form of a sigma at the end.
  return out + lower(text).substr(lower(text.substr(0, size)).size());
}

std::string title(std::string_view text) {
  std::string out;
  std::size_t word = 0;  // where a run of cased characters begins
  const auto write_word = [&](std::size_t end) {
    if (word < end) out += capitalize(text.substr(word, end - word));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = first_size(text.substr(at));
    if (!is_cased(first_of_any(text.substr(at)).code)) {
      write_word(at);
      out += text.substr(at, size);
      word = at + size;
    }
    at += size;
  }
  write_word(text.size());
  return out;
}

bool consists_of(std::string_view text, std::string_view kind) {
  if (kind == "ascii") return is_ascii(text);
  if (kind != "space" && !is_ascii(text)) {
    refuse("is", std::string(kind), "() is implemented for ASCII");
  }
  if (text.empty()) return false;
  if (kind == "title") return title(text) == text && upper(text) != lower(text);
  if (kind == "upper" || kind == "lower") {
    return (kind == "upper" ? upper(text) : lower(text)) == text && upper(text) != lower(text);
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = first_size(text.substr(at));
    const char c = text[at];
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool fits = kind == "space"   ? is_space(text.substr(at, size))
                      : kind == "alpha" ? is_letter
                      : kind == "alnum" ? is_letter || is_digit
                                        : is_digit;
    if (!fits) return false;
    at += size;
  }
  return true;
}

bool is_printable(char32_t code) {
  if (code < 0x80) return code >= 0x20 && code < 0x7f;
  return iswprint_l(static_cast<wint_t>(code), unicode_locale()) != 0 &&
         !is_in(printable_only_in_c, code);
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace dstrain::jinja
