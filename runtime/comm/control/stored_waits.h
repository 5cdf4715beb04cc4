#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/comm/group_failure.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// What the ranks of a group over several nodes tell each other through the store that they met at,
/// where no connection does: who waits in which operation, because one that does not come hides
/// those behind it, and the first failure, because a rank that is busy passes nothing on. Costs the
/// store nothing as long as no rank waits for a second, then a question of each such rank a second.
/// One per rank and group; used by one thread at a time, save tell(). A store that is lost is
/// silent: its connections tell.
class StoredWaits {
 public:
  /// `name` keeps groups that use one store apart; the store must outlive this.
  StoredWaits(Store& store, std::string name, Store::Member member);

  /// The next operation of the group begins.
  void begin();
  /// To be called now and then in a wait, as often as wanted. What a rank has told.
  [[nodiscard]] std::optional<GroupFailure> look();
  /// For a rank that gives up: which ranks, in order, do not wait in this operation or a later one.
  /// Waits a second for those that give up at the same time. Empty where the store is lost.
  [[nodiscard]] std::vector<int> missing();

  /// The first failure of all ranks is kept. Thread-safe.
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
  std::int64_t said_ = 0;  ///< the last operation of which the store knows that this rank waits
  std::optional<Deadline> next_look_;  ///< none before the first look of an operation
};

}  // namespace dstrain::comm
