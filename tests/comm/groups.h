#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace dstrain::test {

using Group = std::vector<std::unique_ptr<comm::Communicator>>;

/// One implementation under the conformance suite: the communicators of `size` ranks, in rank
/// order, each for a thread of its own.
struct GroupMaker {
  std::string name;
  std::function<Group(int size, double timeout_seconds)> make;
};

GroupMaker thread_groups();
/// Every rank maps the segment on its own.
GroupMaker shm_groups();

/// Runs `body` on a thread per rank; the first to throw aborts the group.
void run_group(const Group& group, const std::function<void(comm::Communicator&)>& body);

/// Runs `body` on a thread per rank and returns what each threw, by rank; empty: nothing.
std::vector<std::string> messages_of_ranks(const Group& group,
                                           const std::function<void(comm::Communicator&)>& body);

}  // namespace dstrain::test
