#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// A host and those of its slots that get ranks, ascending.
struct HostSlots {
  std::string host;
  std::vector<int> slots;
  bool made_up = false;  ///< the name is invented: the node's host is not known
  bool operator==(const HostSlots&) const = default;
};

/// The values of --include and --exclude; at most one of them is given.
struct SelectionText {
  std::string include;
  std::string exclude;
  std::string pool = "the hostfile";  ///< where the hosts come from, for messages
  std::string numbering{};            ///< what the slots are, for messages, if that needs words
};

/// Applies NODE[:SLOT,SLOT...][@NODE...] to the pool. A bare NODE means all its slots, unless slots
/// of it are named elsewhere in the same text; "0-3" is a range. The pool's order is kept and hosts
/// left without slots drop out. Throws Error{usage} for hosts and slots that the pool lacks.
std::vector<HostSlots> select_slots(const std::vector<HostSlots>& pool, const SelectionText& text);

/// Parses "0,2-4" to 0 2 3 4, sorted, without duplicates. `what` starts the message of a failure.
std::vector<int> parse_slot_list(std::string_view list, std::string_view what);

}  // namespace dstrain::launcher
