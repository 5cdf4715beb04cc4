#include "runtime/data/jinja_text.h"

#include <algorithm>
#include <cctype>

namespace dstrain::data {
namespace {

constexpr std::string_view spaces = " \t\r\n\v\f";

bool is_space(char c) {
  return spaces.find(c) != std::string_view::npos;
}

bool is_word(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Appends the string that begins with the quote at `text[at]`. Returns where it ends.
std::size_t append_string(std::string& plain, std::string_view text, std::size_t at) {
  const char quote = text[at];
  plain += '\'';
  for (++at; at < text.size() && text[at] != quote; ++at) {
    if (text[at] == '\n') {
      plain += "\\n";
    } else if (text[at] == '\\' && at + 1 < text.size()) {
      plain += text[at++];
      plain += text[at];
    } else {
      plain += text[at];
    }
  }
  plain += '\'';
  return std::min(at + 1, text.size());
}

/// Returns the inside of a tag with white space only between two words.
std::string plain_code(std::string_view code) {
  std::string plain;
  bool spaced = false;
  for (std::size_t at = 0; at < code.size();) {
    if (is_space(code[at])) {
      spaced = true;
      ++at;
      continue;
    }
    if (spaced && !plain.empty() && is_word(plain.back()) && is_word(code[at])) plain += ' ';
    spaced = false;
    if (code[at] == '\'' || code[at] == '"') {
      at = append_string(plain, code, at);
    } else {
      plain += code[at++];
    }
  }
  return plain;
}

/// Finds a tag's closing marker, skipping strings, which may contain one.
std::size_t find_end(std::string_view text, std::size_t at, std::string_view marker) {
  const bool has_strings = marker != "#}";
  for (char quote = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (has_strings && (c == '\'' || c == '"')) {
      quote = c;
    } else if (text.substr(at).starts_with(marker)) {
      return at;
    }
  }
  return std::string_view::npos;
}

void trim_end(std::string& text, std::string_view what) {
  text.erase(text.find_last_not_of(what) + 1);
}

/// Appends the text before a tag, which the tag may trim. `starts_line`: whether the text starts
/// one.
void append_text(std::string& plain, std::string text, std::string_view tag, bool starts_line) {
  const bool marked = tag.size() > 2 && tag[2] == '-';
  if (marked) {
    trim_end(text, spaces);
  } else if (!tag.starts_with("{{")) {
    // lstrip_blocks: white space from the start of the line to a block.
    const std::size_t end = text.find_last_not_of(" \t") + 1;
    if (end == 0 ? starts_line : text[end - 1] == '\n') text.erase(end);
  }
  plain += text;
}

/// Removes the text that the tag before it trims. Returns whether a line starts then.
bool trim_after(std::string_view& rest, std::string_view tag) {
  if (tag[tag.size() - 3] == '-') {
    rest.remove_prefix(std::min(rest.find_first_not_of(spaces), rest.size()));
  } else if (!tag.ends_with("}}") && rest.starts_with('\n')) {
    rest.remove_prefix(1);  // trim_blocks
    return true;
  }
  return false;
}

/// Finds the begin of the next tag.
std::size_t find_tag(std::string_view text) {
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] == '{' && std::string_view("{%#").find(text[at + 1]) != text.npos) return at;
  }
  return std::string_view::npos;
}

std::string_view closing_marker(char opening) {
  if (opening == '{') return "}}";
  return opening == '%' ? "%}" : "#}";
}

/// Returns a tag without the parts that have no effect; empty for a comment.
std::string plain_tag(std::string_view tag) {
  if (tag.starts_with("{#")) return "";
  std::string_view code = tag.substr(2, tag.size() - 4);
  if (code.starts_with('-') || code.starts_with('+')) code.remove_prefix(1);
  if (code.ends_with('-') || code.ends_with('+')) code.remove_suffix(1);
  return std::string(tag.substr(0, 2)) + plain_code(code) + std::string(tag.substr(tag.size() - 2));
}

}  // namespace

std::string plain_jinja(std::string_view jinja) {
  std::string plain;
  std::string_view rest = jinja;
  bool starts_line = true;
  for (std::size_t begin = find_tag(rest); begin != rest.npos; begin = find_tag(rest)) {
    const std::string_view marker = closing_marker(rest[begin + 1]);
    const std::size_t end = find_end(rest, begin + 2, marker);
    if (end == rest.npos) break;
    const std::string_view tag = rest.substr(begin, end + marker.size() - begin);
    append_text(plain, std::string(rest.substr(0, begin)), tag, starts_line);
    plain += plain_tag(tag);
    rest.remove_prefix(end + marker.size());
    starts_line = trim_after(rest, tag);
  }
  std::string text(rest);
  // Jinja drops one line end at the end of a template.
  if (text.ends_with('\n')) text.pop_back();
  return plain + text;
}

}  // namespace dstrain::data
