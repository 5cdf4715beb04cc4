#include "launcher/job/stack_collection.h"

#include <algorithm>

#include <fmt/format.h>

#include "launcher/job/hang_diagnosis.h"
#include "runtime/base/number.h"

namespace dstrain::launcher {
namespace {

constexpr double seconds_max = 12;  // an agent gives up after 10

}  // namespace

std::uint32_t StackCollection::begin(std::size_t agents, double now) {
  ranks_.clear();
  failures_.clear();
  agents_left_ = agents;
  deadline_ = now + seconds_max;
  return ++request_;
}

std::optional<double> StackCollection::deadline() const {
  return under_way() ? std::optional(deadline_) : std::nullopt;
}

void StackCollection::take(const std::string& host, const Stacks& stacks) {
  if (stacks.request != request_ || !under_way()) return;
  --agents_left_;
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
  if (under_way()) failures_ += fmt::format("  {} agents have not answered\n", agents_left_);
  agents_left_ = 0;
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
  return text + failures_;
}

}  // namespace dstrain::launcher
