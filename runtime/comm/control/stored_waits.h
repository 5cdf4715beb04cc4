#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/comm/group_failure.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// Exchanges, through the store, what connections between the ranks of a group over several nodes
/// cannot tell. That is which rank waits in which operation, because a missing rank hides those
/// behind it, and the first failure, because a busy rank passes nothing on. Costs the store nothing
/// until a rank has waited for a second, then one request per such rank per second. One per rank
/// and group; used by one thread at a time, except tell(). Losing the store is silent here: its
/// connections report it.
class StoredWaits {
 public:
  /// `name` separates groups that use one store. The store must outlive this.
  StoredWaits(Store& store, std::string name, Store::Member member);

  /// Begins the next operation of the group.
  void begin();
  /// Call during a wait, as often as wanted. Returns the failure that a rank has told, if any.
  [[nodiscard]] std::optional<GroupFailure> look();
  /// Call on a rank that gives up. Returns the ranks, in order, that do not wait in this operation
  /// or a later one. Waits a second for ranks that give up at the same time. Empty if the store is
  /// lost.
  [[nodiscard]] std::vector<int> missing();

  /// Publishes a failure; the first of all ranks is kept. Thread-safe.
  void tell(const GroupFailure& failure) noexcept;

 private:
  void say_that_this_rank_waits();
  [[nodiscard]] std::optional<GroupFailure> told() const;
  [[nodiscard]] std::string key(const char* what) const;
  [[nodiscard]] std::string key_of(int rank) const;

  Store& store_;
  std::string name_;
  Store::Member member_;
  std::int64_t operation_ = 0;
  std::int64_t said_ = 0;  ///< the last operation for which the store knows that this rank waits
  std::optional<Deadline> next_look_;  ///< none before the first look of an operation
};

}  // namespace dstrain::comm
