#include "runtime/config/data_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/number.h"

namespace dstrain::config {
namespace {

constexpr double weight_max = 1e100;  ///< so that sums of weights stay finite

std::optional<double> weight_of(const std::string& word) {
  return parse_number<double>(word);
}

Failure no_weight(const std::string& word) {
  return {
      fmt::format("\"{}\" stands where a weight is expected: give one before each file, as in "
                  "0.7 A 0.3 B, or none at all",
                  word)};
}

Result<std::vector<DataFile>> parse_weighted(std::span<const std::string> words) {
  std::vector<DataFile> files;
  for (std::size_t at = 0; at < words.size(); at += 2) {
    const std::optional<double> weight = weight_of(words[at]);
    if (!weight) return no_weight(words[at]);
    if (!(*weight > 0 && *weight < weight_max)) {
      return Failure{fmt::format("the weight of a file must be above 0 and below {:g}, got {}",
                                 weight_max, words[at])};
    }
    if (at + 1 == words.size()) {
      return Failure{fmt::format("no file follows the weight {}", words[at])};
    }
    files.push_back({words[at + 1], *weight});
  }
  return files;
}

}  // namespace

Result<std::vector<DataFile>> parse_data_files(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word.empty()) return Failure{"needs a value"};
  }
  if (words.size() > 1 && weight_of(words.front())) return parse_weighted(words);
  std::vector<DataFile> files;
  for (const std::string& word : words) {
    if (!files.empty() && weight_of(word)) return no_weight(words.front());
    files.push_back({word});
  }
  return files;
}

Result<std::map<std::string, std::string>> parse_role_names(std::string_view text) {
  static constexpr std::array<std::string_view, 6> roles{"user", "assistant", "system",
                                                         "tool", "developer", "ipython"};
  std::map<std::string, std::string> names;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    if (equals == std::string_view::npos || name.empty()) {
      return Failure{fmt::format("expected NAME=ROLE, as in narrator=system, got \"{}\"", text)};
    }
    const std::string_view rest = text.substr(equals + 1);
    const std::string_view role = rest.substr(0, rest.find(' '));
    if (std::ranges::find(roles, role) == roles.end()) {
      return Failure{fmt::format("{}={}: the role must be {}", name, role, fmt::join(roles, ", "))};
    }
    const auto [known, is_new] = names.emplace(name, role);
    if (!is_new && known->second != role) {
      return Failure{fmt::format("{} is both {} and {}", name, known->second, role)};
    }
    text = rest.substr(std::min(role.size() + 1, rest.size()));
  }
  return names;
}

std::optional<std::chrono::year_month_day> parse_date(std::string_view text) {
  constexpr std::string_view form = "0000-00-00";
  const bool fits = std::ranges::equal(text, form, [](char c, char expected) {
    return expected == '0' ? c >= '0' && c <= '9' : c == expected;
  });
  if (!fits) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t size) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + size, value);
    return value;
  };
  const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  return date.ok() ? std::optional(date) : std::nullopt;
}

std::string describe(std::span<const DataFile> files) {
  std::vector<std::string> words;
  for (const DataFile& file : files) {
    if (file.weight > 0) words.push_back(fmt::format("{}", file.weight));
    words.push_back(file.path);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace dstrain::config
