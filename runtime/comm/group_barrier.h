#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/comm/call.h"
#include "runtime/comm/group_failure.h"
#include "runtime/os/futex.h"
#include "runtime/os/process_identity.h"

namespace dstrain::comm {

class StoredWaits;

/// The shared state of a group, all zero at the start. Plain data and atomics only, because it may
/// be in memory shared between processes.
struct alignas(64) GroupBlock {
  enum FailureState : std::uint32_t { none, being_told, told };
  std::atomic<std::uint32_t> failed{none};
  std::int32_t code = 0;       ///< an ErrorCode; readable once the failure is published, like `why`
  std::array<char, 1016> why;  ///< zero-terminated text of the failure
  std::atomic<std::int32_t> left{0};                  ///< number of ranks that have left
  alignas(64) std::atomic<std::uint64_t> arrived{0};  ///< arrivals in all barriers
  alignas(64) WaitableCounter completed;  ///< number of completed barriers; the ranks wait for it
};

/// The state that one member shows to the others. Only its owner writes it.
struct alignas(64) MemberBlock {
  enum State : std::uint32_t { absent, present, left };
  std::atomic<std::uint32_t> arrivals{0};  ///< barriers that the rank has arrived at
  std::atomic<std::uint32_t> state{absent};
  ProcessIdentity process;        ///< readable once the member is present
  std::array<Call, 2> announced;  ///< by parity of the operation's number
};

/// The barrier of the ranks of one group that share memory. It announces this rank's operation,
/// waits for the others, and finds out why they do not come. One per rank; used by one thread at a
/// time, except abort().
///
/// A collective is one or more barriers; every rank arrives at each once. In the first, the ranks
/// compare what they announced. A rank that has passed barrier b knows that all others have done
/// all their work before b, so memory that was read between barriers b-1 and b may be reused after
/// b.
class GroupBarrier {
 public:
  struct Options {
    int rank = 0;
    double timeout_seconds = 600;  ///< of each wait
    std::vector<int> names{};      ///< names of the ranks in messages; empty: 0, 1, ...
    /// The waits of the larger group that this one is a part of: polled during waits, and asked for
    /// the missing ranks.
    StoredWaits* waits = nullptr;
  };
  /// The memory must outlive the barrier. Does not wait.
  GroupBarrier(GroupBlock& group, std::span<MemberBlock> members, Options options);
  GroupBarrier(const GroupBarrier&) = delete;
  GroupBarrier& operator=(const GroupBarrier&) = delete;
  GroupBarrier(GroupBarrier&&) = delete;
  GroupBarrier& operator=(GroupBarrier&&) = delete;
  ~GroupBarrier();

  /// Announces this rank's next operation, with its peer as messages name it. Call it before
  /// writing data for the others.
  void announce(const Call& call);
  /// The first barrier of the announced operation. Throws Error{comm} on every rank if the
  /// announcements differ.
  void agree();
  /// A further barrier. Waits throw Error{timeout}, naming the missing ranks, Error{comm}, naming a
  /// rank that has died or left, or Error{aborted}.
  void arrive_and_wait();

  /// Announces a send or receive. Not a barrier.
  void announce_pairwise(const Call& call);
  /// Waits until `peer` brings `counter` to `target`.
  void wait_for_peer(WaitableCounter& counter, std::uint32_t target, int peer);
  /// Compares the announced receive with the send of its peer. If they do not match, aborts the
  /// group, because the sender waits for a receipt that cannot come, and throws Error{comm}.
  void check_message(const Call& sent);

  /// Makes waiting and later operations of all ranks throw this failure; the first one is kept.
  /// Thread-safe.
  void spread(const GroupFailure& failure) noexcept;
  /// spread() of an Error{aborted} that names this rank.
  void abort() noexcept;
  /// The failure that a rank has spread, if any. Does not wait.
  [[nodiscard]] std::optional<GroupFailure> failure() const;

 private:
  static constexpr int everyone = -1;
  static void spin(const WaitableCounter& counter, std::uint32_t target);
  void yield(const WaitableCounter& counter, std::uint32_t target);
  void wait(WaitableCounter& counter, std::uint32_t target, int peer);
  void check_not_failed() const;
  void check_agreement() const;
  [[noreturn]] void fail_late(int peer) const;
  void check_alive(std::span<const int> missing) const;
  [[nodiscard]] std::vector<int> missing_ranks(int peer) const;
  [[nodiscard]] int name_of(int rank) const;
  [[nodiscard]] std::vector<int> named(std::vector<int> ranks) const;
  [[nodiscard]] std::string doing() const;

  GroupBlock& group_;
  std::span<MemberBlock> members_;
  Options options_;
  bool has_core_;                        ///< no more ranks than cores
  std::uint32_t barriers_to_sleep_ = 0;  ///< next barriers without yielding
  std::uint32_t barriers_ = 0;
  std::int64_t operations_ = 0;
  Call current_;
};

/// Returns "rank 2", "ranks 1 3".
std::string name_ranks(std::span<const int> ranks);

}  // namespace dstrain::comm
