#include "launcher/plan/selection.h"

#include <algorithm>
#include <map>

#include "launcher/plan/host_name.h"
#include "launcher/plan/hostfile.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::string_view grammar = "write NODE[:SLOT,SLOT...][@NODE...]";

using SlotsByHost = std::map<std::string, std::vector<int>, std::less<>>;

/// Calls `each` for every part of `text` between separators, empty parts included.
template <class F>
void split(std::string_view text, char separator, F each) {
  for (;;) {
    const std::size_t end = text.find(separator);
    each(text.substr(0, end));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

bool has_host(const std::vector<HostSlots>& pool, std::string_view host) {
  return std::any_of(pool.begin(), pool.end(), [&](const HostSlots& h) { return h.host == host; });
}

/// Where the name of a NODE ends: after "]", or before the first ':'. A name that the pool contains
/// as it is (an IPv6 address, say) is not split.
std::size_t name_length(const std::vector<HostSlots>& pool, std::string_view node) {
  if (has_host(pool, node)) return node.size();
  if (node.starts_with('[') && node.find(']') != node.npos) return node.find(']') + 1;
  return std::min(node.find(':'), node.size());
}

/// The hosts named in `text` with the slots named for them (none: the whole host).
SlotsByHost parse_nodes(const std::vector<HostSlots>& pool,
                        const SelectionText& selection,
                        std::string_view option) {
  const std::string_view text = selection.include.empty() ? selection.exclude : selection.include;
  SlotsByHost nodes;
  split(text, '@', [&](std::string_view node) {
    node = trim(node);
    const std::size_t end = name_length(pool, node);
    const std::string_view host = without_brackets(node.substr(0, end));
    if (!has_host(pool, host)) {
      fail(ErrorCode::usage, "{}: host \"{}\" is not in {}; {}", option, host, selection.pool,
           grammar);
    }
    std::vector<int>& slots = nodes[std::string(host)];
    if (end == node.size()) return;
    const std::string what = fmt::format("{} {}", option, text);
    if (node[end] != ':') fail(ErrorCode::usage, "{}: \"{}\"; {}", what, node, grammar);
    const std::vector<int> named = parse_slot_list(node.substr(end + 1), what);
    slots.insert(slots.end(), named.begin(), named.end());
  });
  return nodes;
}

void check_slots(const HostSlots& host,
                 const std::vector<int>& named,
                 std::string_view option,
                 const std::string& numbering) {
  for (const int slot : named) {
    if (!std::binary_search(host.slots.begin(), host.slots.end(), slot)) {
      fail(ErrorCode::usage, "{}: no slot {} on host \"{}\"; it has {} slots{}", option, slot,
           host.host, host.slots.size(), numbering.empty() ? "" : ", and " + numbering);
    }
  }
}

}  // namespace

std::vector<int> parse_slot_list(std::string_view list, std::string_view what) {
  const Result<std::vector<NumberRange>> ranges = parse_number_ranges(list);
  if (!ranges.ok()) {
    fail(ErrorCode::usage, "{}: \"{}\" is not a slot number; {}", what, ranges.error(), grammar);
  }
  std::vector<int> slots;
  for (const auto& [first, last] : ranges.value()) {
    if (last < first || last - std::int64_t{first} >= slots_max) {
      fail(ErrorCode::usage, "{}: \"{}-{}\" is not a range of at most {} slots", what, first, last,
           slots_max);
    }
    for (int slot = first; slot <= last; ++slot) slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

std::vector<HostSlots> select_slots(const std::vector<HostSlots>& pool, const SelectionText& text) {
  if (!text.include.empty() && !text.exclude.empty()) {
    fail(ErrorCode::usage, "--include and --exclude exclude each other; give one of them");
  }
  if (text.include.empty() && text.exclude.empty()) return pool;
  const bool include = !text.include.empty();
  const std::string_view option = include ? "--include" : "--exclude";
  const SlotsByHost nodes = parse_nodes(pool, text, option);
  std::vector<HostSlots> selected;
  for (const HostSlots& host : pool) {
    const auto named = nodes.find(host.host);
    HostSlots kept{host.host, {}};
    if (named != nodes.end()) check_slots(host, named->second, option, text.numbering);
    for (const int slot : host.slots) {
      const bool listed = named != nodes.end() &&
                          (named->second.empty() ||
                           std::count(named->second.begin(), named->second.end(), slot) > 0);
      if (listed == include) kept.slots.push_back(slot);
    }
    if (!kept.slots.empty()) selected.push_back(std::move(kept));
  }
  return selected;
}

}  // namespace dstrain::launcher
