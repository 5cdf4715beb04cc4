#include "runtime/base/printable.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/shell_word.h"
#include "runtime/base/utf8.h"

namespace dstrain {
namespace {

constexpr std::size_t line_bytes_max = 8192;
constexpr std::size_t message_bytes_max = 256U << 10;
constexpr std::size_t rest_bytes_max = 64;  // the longest result of rest_of()

/// Returns the text that replaces a hidden rest of `bytes` bytes.
std::string rest_of(std::size_t bytes) {
  return fmt::format("... ({} bytes)", bytes);
}

bool is_broken(std::string_view text, const Character& character) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  return character.code == 0xFFFD && !text.starts_with(replacement);
}

/// Control characters, line separators, and marks that change the direction of text.
bool is_unprintable(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string escape(std::string_view bytes, char32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (code >= 0x80 && code != 0xFFFD) return fmt::format("\\u{:04x}", static_cast<unsigned>(code));
  std::string text;
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// Appends as much of `text` as fits; returns whether that was all.
bool append_printable(std::string& line, std::string_view text, std::size_t bytes_max) {
  while (!text.empty()) {
    const Character character = first_of_any(text);
    const std::string_view bytes = text.substr(0, character.size);
    const bool plain = !is_broken(text, character) && !is_unprintable(character.code);
    const std::string shown = plain ? std::string(bytes) : escape(bytes, character.code);
    if (line.size() + shown.size() > bytes_max) return false;
    line += shown;
    text.remove_prefix(character.size);
  }
  return true;
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string line;
  if (!append_printable(line, text, bytes_max)) line += rest_of(text.size());
  return line;
}

std::string printable_list(std::span<const std::string> problems) {
  constexpr std::size_t problem_bytes_max = 4096;
  std::string list;
  for (const std::string& problem : problems) {
    if (!list.empty()) list += '\n';
    const std::size_t end = std::min(problem.find(before_command), problem.size());
    list += printable(std::string_view(problem).substr(0, end), problem_bytes_max);
    if (end == problem.size()) continue;
    list += before_command;
    list +=
        printable(std::string_view(problem).substr(end + before_command.size()), problem_bytes_max);
  }
  return list;
}

std::string printable_message(std::string_view message) {
  std::string all;
  while (!message.empty()) {
    if (all.size() > message_bytes_max && message.size() > rest_bytes_max) {
      return all + rest_of(message.size());
    }
    const std::size_t end = std::min(message.find('\n'), message.size());
    const std::string_view line = message.substr(0, end);
    std::string shown = printable(line, std::string::npos);
    if (shown.size() > line_bytes_max + rest_bytes_max) shown = printable(line, line_bytes_max);
    all += shown;
    if (end < message.size()) all += '\n';
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return all;
}

}  // namespace dstrain
