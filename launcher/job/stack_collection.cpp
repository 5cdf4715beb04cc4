#include "launcher/job/stack_collection.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/job/hang_diagnosis.h"
#include "runtime/base/number.h"

namespace dstrain::launcher {
namespace {

constexpr double seconds_max = 12;  // an agent gives up after 10
constexpr std::size_t named_max = 16;

/// "the agent on w1 has not answered", "the agents on w1, w2 have not answered".
std::string silence_line(const std::set<std::string>& hosts) {
  const std::size_t shown = std::min(hosts.size(), named_max);
  const auto end = std::next(hosts.begin(), static_cast<std::ptrdiff_t>(shown));
  const std::string more =
      hosts.size() > shown ? fmt::format(" and {} more", hosts.size() - shown) : "";
  return fmt::format("  the agent{} on {}{} ha{} not answered\n", hosts.size() == 1 ? "" : "s",
                     fmt::join(hosts.begin(), end, ", "), more, hosts.size() == 1 ? "s" : "ve");
}

}  // namespace

std::uint32_t StackCollection::begin(Agents agents, double now) {
  ranks_.clear();
  failures_.clear();
  silent_.clear();
  awaited_ = std::move(agents);
  deadline_ = now + seconds_max;
  return ++request_;
}

std::optional<double> StackCollection::deadline() const {
  return under_way() ? std::optional(deadline_) : std::nullopt;
}

void StackCollection::give_up(int agent) {
  const auto found = awaited_.find(agent);
  if (found == awaited_.end()) return;
  silent_.insert(found->second);
  awaited_.erase(found);
}

void StackCollection::take(int agent, const Stacks& stacks) {
  const auto found = awaited_.find(agent);
  if (stacks.request != request_ || found == awaited_.end()) return;
  const std::string host = found->second;
  awaited_.erase(found);
  std::string* lines = &failures_;
  std::string_view rest = stacks.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with(stack_mark)) {
      const auto rank = parse_number<int>(line.substr(1));
      lines = rank ? &ranks_[*rank] : &failures_;
    } else if (lines == &failures_) {
      failures_ += fmt::format("  {}: {}\n", host, line);
    } else {
      lines->append(line) += '\n';
    }
  }
}

bool StackCollection::take_end(double now) {
  if (request_ == 0 || deadline_ == 0 || (under_way() && now < deadline_)) return false;
  while (under_way()) give_up(awaited_.begin()->first);
  deadline_ = 0;
  return true;
}

std::vector<StackCollection::Group> StackCollection::groups() const {
  std::vector<Group> groups;
  for (const auto& [rank, text] : ranks_) {
    const auto alike = std::ranges::find(groups, text, &Group::text);
    if (alike != groups.end()) {
      alike->ranks.push_back(rank);
    } else {
      groups.push_back({{rank}, text});
    }
  }
  return groups;
}

std::string StackCollection::text() const {
  std::string text;
  for (const Group& group : groups()) {
    text += fmt::format("stacks of {}:\n{}", list_ranks(group.ranks), group.text);
  }
  return text + failures_ + (silent_.empty() ? "" : silence_line(silent_));
}

}  // namespace dstrain::launcher
