#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/store.h"
#include "tests/support/process_end.h"

namespace dstrain::test {

/// The communicators of a group, in rank order, each for a thread of its own. Those of ranks that
/// live in other processes are null. The ranks also share a store, under the group's own name.
class Group {
 public:
  using Members = std::vector<std::unique_ptr<comm::Communicator>>;
  Group(Members members, std::shared_ptr<comm::Store> store, std::string name = "group")
      : store_(std::move(store)), name_(std::move(name)), members_(std::move(members)) {}

  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }
  [[nodiscard]] bool has(int rank) const { return members_[index(rank)] != nullptr; }
  [[nodiscard]] comm::Communicator& operator[](int rank) const { return *members_[index(rank)]; }
  void destroy(int rank) { members_[index(rank)].reset(); }
  void abort() const;

  /// What `rank` tells all ranks; once per group.
  void tell(int rank, const std::string& text) const;
  [[nodiscard]] std::string told(int rank) const;
  /// Counts over all ranks: how often it has been called.
  [[nodiscard]] std::int64_t count() const {
    return store_->add(name_ + "/count", 1, hang_seconds);
  }
  [[nodiscard]] std::int64_t counted() const {
    return store_->add(name_ + "/count", 0, hang_seconds);
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  std::shared_ptr<comm::Store> store_;  // shared: communicators may use it until they go
  std::string name_;
  Members members_;
};

/// One implementation under the conformance suite.
struct GroupMaker {
  std::string name;
  std::function<Group(int size, double timeout_seconds)> make;
};

GroupMaker thread_groups();
/// Every rank maps the segment on its own.
GroupMaker shm_groups();
/// Every rank has its own connections.
GroupMaker tcp_groups();

/// Threads whose tensors pass through staging blocks, in chunks: a message names the chunk.
GroupMaker staged_groups(Bytes staging);

/// Nodes that are groups of threads, with TCP between them. A node takes `ranks_per_node` in turn,
/// until there are as many as the group has.
GroupMaker hierarchical_groups(std::vector<int> ranks_per_node);
/// Rank r is on node r % 2: the ranks of a node are not consecutive.
GroupMaker scattered_groups();

/// Runs `body` on a thread per rank of this process; the first to throw aborts the group.
void run_group(const Group& group, const std::function<void(comm::Communicator&)>& body);

struct Failed {
  ErrorCode code = ErrorCode::internal;
  std::string message;  ///< empty: it did not fail
};
/// Runs `body` on a thread per rank and returns what each threw, by rank.
std::vector<Failed> failures_of_ranks(const Group& group,
                                      const std::function<void(comm::Communicator&)>& body);

}  // namespace dstrain::test
