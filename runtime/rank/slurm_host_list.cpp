#include "runtime/rank/slurm_host_list.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/base/number.h"

namespace dstrain {
namespace {

constexpr std::string_view separators = ", \t\r\n";
constexpr std::size_t digits_max = 64;

/// Text, and the numbers of the bracket after it.
struct Part {
  std::string_view text;
  std::vector<std::string> numbers;
};

Failure refused(std::string_view word, std::string_view why) {
  return {fmt::format("host list \"{}\": {}", word.substr(0, 200), why)};
}

/// Removes the list's first word, which ends at a separator outside of brackets, and returns it.
std::string_view take_word(std::string_view& list) {
  bool in_bracket = false;
  std::size_t end = 0;
  for (; end < list.size(); ++end) {
    if (!in_bracket && separators.find(list[end]) != separators.npos) break;
    if (list[end] == '[') in_bracket = true;
    if (list[end] == ']') in_bracket = false;
  }
  const std::string_view word = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return word;
}

/// Appends the numbers of "008-010" or "7". Returns false if it is not such a range, or has more
/// than `room` numbers.
bool append_range(std::string_view range, std::size_t room, std::vector<std::string>& numbers) {
  const std::size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash);
  const std::string_view to = dash == range.npos ? from : range.substr(dash + 1);
  const auto first = parse_number<std::uint64_t>(from);
  const auto last = parse_number<std::uint64_t>(to);
  if (!first || !last || *last < *first || *last - *first >= room) return false;
  if (std::max(from.size(), to.size()) > digits_max) return false;
  for (std::uint64_t at = 0; at <= *last - *first; ++at) {
    numbers.push_back(fmt::format("{:0{}}", *first + at, from.size()));
  }
  return true;
}

/// Splits "n[1-2]x[3]" into its parts; a word without brackets has no numbers.
Result<std::vector<Part>> cut(std::string_view word) {
  std::vector<Part> parts;
  for (std::string_view rest = word; !rest.empty();) {
    const std::size_t open = rest.find('[');
    const std::size_t close = rest.find(']');
    if (open == rest.npos && close == rest.npos && parts.empty()) {
      parts.push_back({rest, {}});
      break;
    }
    if (open == rest.npos && close == rest.npos) {
      return refused(word, fmt::format("\"{}\" follows the last bracket", rest));
    }
    if (close == rest.npos || open > close) return refused(word, "a bracket without its other one");
    Part part{rest.substr(0, open), {}};
    std::string_view ranges = rest.substr(open + 1, close - open - 1);
    rest.remove_prefix(close + 1);
    for (bool more = true; more;) {
      const std::size_t comma = ranges.find(',');
      const std::string_view range = ranges.substr(0, comma);
      if (!append_range(range, listed_hosts_max - part.numbers.size(), part.numbers)) {
        return refused(word,
                       fmt::format("\"{}\" is not a range of at most {} numbers, such as 008-010",
                                   range.substr(0, 50), listed_hosts_max));
      }
      more = comma != ranges.npos;
      if (more) ranges.remove_prefix(comma + 1);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Returns the number of hosts in the parts; none if it is above the limit.
std::optional<std::size_t> count_hosts(const std::vector<Part>& parts) {
  std::size_t count = 1;
  for (const Part& part : parts) {
    count *= std::max<std::size_t>(part.numbers.size(), 1);
    if (count > listed_hosts_max) return std::nullopt;
  }
  return count;
}

/// Returns host number `index` of the parts.
std::string host_at(const std::vector<Part>& parts, std::size_t index) {
  if (parts.back().numbers.empty()) return std::string(parts.back().text);
  const auto take = [&index](const Part& part) {
    const std::string& number = part.numbers[index % part.numbers.size()];
    index /= part.numbers.size();
    return std::string(part.text) + number;
  };
  const std::string last = take(parts.back());
  std::string name;
  for (std::size_t at = 0; at + 1 < parts.size(); ++at) name += take(parts[at]);
  return name + last;
}

/// Parses "2(x3)" or "2" as a count and its repetitions; nothing if it is neither.
std::optional<std::pair<int, int>> counted(std::string_view part) {
  const std::size_t open = part.find("(x");
  const auto count = parse_number<int>(part.substr(0, open));
  if (!count || *count < 1) return std::nullopt;
  if (open == part.npos) return std::pair(*count, 1);
  if (!part.ends_with(')')) return std::nullopt;
  const auto times = parse_number<int>(part.substr(open + 2, part.size() - open - 3));
  if (!times || *times < 1) return std::nullopt;
  return std::pair(*count, *times);
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view list) {
  std::vector<std::string> hosts;
  while (!list.empty()) {
    const std::string_view word = take_word(list);
    if (word.empty()) continue;
    const Result<std::vector<Part>> parts = cut(word);
    if (!parts.ok()) return Failure{parts.error()};
    const std::optional<std::size_t> count = count_hosts(parts.value());
    if (!count || *count > listed_hosts_max - hosts.size()) {
      return refused(word, fmt::format("more than {} hosts", listed_hosts_max));
    }
    for (std::size_t at = 0; at < *count; ++at) hosts.push_back(host_at(parts.value(), at));
  }
  return hosts;
}

Result<std::vector<int>> expand_task_counts(std::string_view text) {
  std::vector<int> counts;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const auto part = counted(text.substr(0, comma));
    if (!part || static_cast<std::size_t>(part->second) > listed_hosts_max - counts.size()) {
      return Failure{fmt::format("\"{}\" is not a list of tasks per node, such as 2(x3),1", text)};
    }
    counts.insert(counts.end(), static_cast<std::size_t>(part->second), part->first);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return counts;
}

}  // namespace dstrain
