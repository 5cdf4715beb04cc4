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

/// What a group shares, all zero at the start: plain data and atomics only, because it may lie in
/// memory shared between processes.
struct alignas(64) GroupBlock {
  enum FailureState : std::uint32_t { none, being_told, told };
  std::atomic<std::uint32_t> failed{none};
  std::int32_t code = 0;              ///< an ErrorCode; readable once the failure is told, as is
  std::array<char, 1016> why;         ///< its text, which ends with 0
  std::atomic<std::int32_t> left{0};  ///< how many ranks have
  alignas(64) std::atomic<std::uint64_t> arrived{0};  ///< ranks, in all barriers together
  alignas(64) WaitableCounter completed;              ///< barriers; what the ranks wait for
};

/// What one member shows to the others. Written by its owner alone.
struct alignas(64) MemberBlock {
  enum State : std::uint32_t { absent, present, left };
  std::atomic<std::uint32_t> arrivals{0};  ///< barriers that the rank has come to
  std::atomic<std::uint32_t> state{absent};
  ProcessIdentity process;        ///< readable once the member is present
  std::array<Call, 2> announced;  ///< by parity of the operation's number
};

/// The barrier of the ranks of one group that share memory: it announces what this rank is doing,
/// waits for the others, and finds out why they do not come. One per rank; used by one thread at a
/// time, save abort().
///
/// A collective is one or more barriers, of one arrival of every rank each; in the first the ranks
/// compare what they announced. A rank that has passed barrier b knows that all others have done
/// all they do before b, so memory that was read between barriers b-1 and b may be reused after b.
class GroupBarrier {
 public:
  struct Options {
    int rank = 0;
    double timeout_seconds = 600;  ///< of each wait
    std::vector<int> names{};      ///< what messages call the ranks; empty: 0, 1, ...
    /// Of the larger group that this one is a part of: looked at in waits, and asked who is
    /// missing.
    StoredWaits* waits = nullptr;
  };
  /// The memory must outlive this. Does not wait.
  GroupBarrier(GroupBlock& group, std::span<MemberBlock> members, Options options);
  GroupBarrier(const GroupBarrier&) = delete;
  GroupBarrier& operator=(const GroupBarrier&) = delete;
  GroupBarrier(GroupBarrier&&) = delete;
  GroupBarrier& operator=(GroupBarrier&&) = delete;
  ~GroupBarrier();

  /// Says what this rank does next, its peer as messages call it. What it writes for the others
  /// comes after this.
  void announce(const Call& call);
  /// The first barrier of the announced operation. Throws Error{comm} on every rank when the ranks
  /// do not all do the same.
  void agree();
  /// A further barrier. Waits throw Error{timeout}, naming the missing ranks, Error{comm}, naming a
  /// rank that has died or left, or Error{aborted}.
  void arrive_and_wait();

  /// Says that this rank sends or receives; no barrier.
  void announce_pairwise(const Call& call);
  /// Waits for `peer` alone to bring `counter` to `target`.
  void wait_for_peer(WaitableCounter& counter, std::uint32_t target, int peer);
  /// Compares the announced receive with what its peer sends. Aborts the group and throws
  /// Error{comm} when they do not match: the sender waits for a receipt that cannot come.
  void check_message(const Call& sent);

  /// Makes waiting and later operations of all ranks throw this failure; the first is kept.
  /// Thread-safe.
  void spread(const GroupFailure& failure) noexcept;
  /// spread() of an Error{aborted} that names this rank.
  void abort() noexcept;
  /// What a rank has spread. Does not wait.
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
  std::uint32_t barriers_to_sleep_ = 0;  ///< in which this rank does not yield
  std::uint32_t barriers_ = 0;
  std::int64_t operations_ = 0;
  Call current_;
};

/// "rank 2", "ranks 1 3".
std::string name_ranks(std::span<const int> ranks);

}  // namespace dstrain::comm
