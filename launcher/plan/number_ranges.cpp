#include "launcher/plan/number_ranges.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "launcher/plan/words.h"

namespace dstrain::launcher {
namespace {

std::optional<int> parse_number(std::string_view word) {
  int number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

Result<std::vector<NumberRange>> parse_number_ranges(std::string_view list) {
  std::vector<NumberRange> ranges;
  for (;;) {
    const std::size_t comma = list.find(',');
    const std::string_view part = trim(list.substr(0, comma));
    const std::size_t dash = part.find('-', 1);  // the first character may be a sign
    const std::string_view first = trim(part.substr(0, dash));
    const std::string_view last = dash == part.npos ? first : trim(part.substr(dash + 1));
    const std::optional<int> from = parse_number(first);
    const std::optional<int> to = parse_number(last);
    if (!from || !to) return Failure{std::string(from ? last : first)};
    ranges.push_back({*from, *to});
    if (comma == list.npos) return ranges;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace dstrain::launcher
