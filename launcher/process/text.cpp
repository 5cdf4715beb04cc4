#include "launcher/process/text.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "runtime/base/number.h"
#include "runtime/base/shell_word.h"

namespace dstrain::launcher {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == text.npos) return "";
  const std::size_t before = text.find_last_of("\r\n", end);
  std::string line(text.substr(before + 1, end - before));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return line;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = '\0';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
      if (!word) word.emplace();
    } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      const bool escape = c == '\\' && quote != '\'' && at + 1 < text.size();
      if (!word) word.emplace();
      *word += escape ? text[++at] : c;
    }
  }
  if (quote != '\0') return Failure{"a quote is not closed"};
  if (word) words.push_back(*word);
  return words;
}

std::string shell_command(std::string_view script, const std::vector<std::string>& words) {
  std::string command = "exec /bin/sh -c " + shell_quote(script);
  for (const std::string& word : words) command += ' ' + shell_quote(word);
  return command;
}

std::string first_line_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Result<std::vector<NumberRange>> parse_number_ranges(std::string_view list) {
  std::vector<NumberRange> ranges;
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::string_view part = trim(list.substr(0, comma));
    const std::size_t dash = part.find('-', 1);  // the first character may be a sign
    const std::string_view first = trim(part.substr(0, dash));
    const std::string_view last = dash == part.npos ? first : trim(part.substr(dash + 1));
    const std::optional<int> from = parse_number<int>(first);
    const std::optional<int> to = parse_number<int>(last);
    if (!from || !to) return Failure{std::string(from ? last : first)};
    ranges.push_back({*from, *to});
    if (comma == list.npos) return ranges;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace dstrain::launcher
