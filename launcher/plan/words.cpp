#include "launcher/plan/words.h"

#include <algorithm>
#include <optional>

namespace dstrain::launcher {

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
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

}  // namespace dstrain::launcher
