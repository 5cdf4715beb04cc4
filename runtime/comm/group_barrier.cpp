#include "runtime/comm/group_barrier.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <thread>

#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/control/stored_waits.h"
#include "runtime/os/control_groups.h"

namespace dstrain::comm {
namespace {

/// About 10 us of polling before sleeping: a peer that is about to arrive costs no system call.
constexpr int spins_before_sleep = 400;
/// With more ranks than cores, spinning would keep the awaited rank from running. Instead a rank
/// yields its core this many times, which costs less than sleeping and being woken.
constexpr int yields_before_sleep = 32;
/// If yielding takes longer than this, another thread computes on the core. The scheduler favours a
/// rank that wakes over one that yields, so the rank sleeps at once in this many barriers that
/// follow.
constexpr double yield_seconds_max = 0.001;
constexpr std::uint32_t barriers_without_yields = 64;
/// How often a sleeping rank checks whether the group was aborted or a rank left.
constexpr double look_seconds = 0.05;
/// How often it checks in /proc whether the missing ranks are alive.
constexpr double liveness_seconds = 1.0;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

std::string name_ranks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (const int rank : ranks) text += fmt::format(" {}", rank);
  return text;
}

GroupBarrier::GroupBarrier(GroupBlock& group, std::span<MemberBlock> members, Options options)
    : group_(group),
      members_(members),
      options_(std::move(options)),
      // Counts the cores of the machine, because a thread's affinity may be narrowed to one of
      // them.
      has_core_(std::ssize(members) <=
                cores_within_quota(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)))) {
  MemberBlock& own = members_[static_cast<std::size_t>(options_.rank)];
  own.process = this_process();
  own.state = MemberBlock::present;
}

GroupBarrier::~GroupBarrier() {
  // A rank that fails does not announce that it leaves. Its peers see the process end, and the
  // launcher sees it before them, so that it names the culprit and not the ranks that waited for
  // it.
  if (std::uncaught_exceptions() > 0) return;
  MemberBlock& own = members_[static_cast<std::size_t>(options_.rank)];
  own.state = MemberBlock::left;
  ++group_.left;
  futex_wake_all(group_.completed.count);
}

void GroupBarrier::announce(const Call& call) {
  current_ = call;
  check_not_failed();
  MemberBlock& own = members_[static_cast<std::size_t>(options_.rank)];
  own.announced[static_cast<std::size_t>(++operations_ % 2)] = call;
}

void GroupBarrier::agree() {
  arrive_and_wait();
  check_agreement();
}

/// The last rank to arrive releases all others, which sleep on one word: a barrier costs one
/// wake-up per rank, however many ranks there are. A rank that dies before it has released them
/// counts as missing.
void GroupBarrier::arrive_and_wait() {
  ++barriers_;
  if ((group_.arrived.fetch_add(1) + 1) % members_.size() == 0) group_.completed.increment();
  members_[static_cast<std::size_t>(options_.rank)].arrivals = barriers_;
  wait(group_.completed, barriers_, everyone);
}

void GroupBarrier::announce_pairwise(const Call& call) {
  current_ = call;
  check_not_failed();
}

void GroupBarrier::wait_for_peer(WaitableCounter& counter, std::uint32_t target, int peer) {
  wait(counter, target, peer);
}

void GroupBarrier::check_message(const Call& sent) {
  if (sent.numel == current_.numel && sent.dtype == current_.dtype) return;
  abort();
  fail(ErrorCode::comm, "the ranks disagree: rank {} does {}, rank {} does {}",
       name_of(options_.rank), to_string(current_), current_.peer, to_string(sent));
}

void GroupBarrier::spread(const GroupFailure& failure) noexcept {
  std::uint32_t nothing = GroupBlock::none;
  if (!group_.failed.compare_exchange_strong(nothing, GroupBlock::being_told)) return;
  group_.code = static_cast<std::int32_t>(failure.code);
  const std::size_t length = std::min(failure.why.size(), group_.why.size() - 1);
  std::memcpy(group_.why.data(), failure.why.data(), length);
  group_.why[length] = '\0';
  group_.failed = GroupBlock::told;
  futex_wake_all(group_.completed.count);
}

void GroupBarrier::abort() noexcept {
  spread({ErrorCode::aborted, "aborted by rank " + std::to_string(name_of(options_.rank))});
}

std::optional<GroupFailure> GroupBarrier::failure() const {
  if (group_.failed != GroupBlock::told) return std::nullopt;
  return GroupFailure{static_cast<ErrorCode>(group_.code), group_.why.data()};
}

void GroupBarrier::spin(const WaitableCounter& counter, std::uint32_t target) {
  for (int i = 0; i < spins_before_sleep && !counter.reached(target); ++i) pause_briefly();
}

void GroupBarrier::yield(const WaitableCounter& counter, std::uint32_t target) {
  if (barriers_to_sleep_ > 0) {
    --barriers_to_sleep_;
    return;
  }
  const Deadline soon = Deadline::after(yield_seconds_max);
  for (int i = 0; i < yields_before_sleep && !counter.reached(target); ++i) {
    std::this_thread::yield();
    if (!soon.passed()) continue;
    barriers_to_sleep_ = barriers_without_yields;
    return;
  }
}

/// `peer`: the one rank to wait for, or everyone.
void GroupBarrier::wait(WaitableCounter& counter, std::uint32_t target, int peer) {
  has_core_ ? spin(counter, target) : yield(counter, target);
  Deadline deadline = Deadline::after(options_.timeout_seconds);
  Deadline liveness = Deadline::after(liveness_seconds);
  while (!counter.reached(target)) {
    check_not_failed();
    if (group_.left != 0 || liveness.passed()) {
      const std::vector<int> missing = missing_ranks(peer);
      if (counter.reached(target)) return;  // checked last: it may have arrived and left since
      check_alive(missing);
      liveness = Deadline::after(liveness_seconds);
    }
    deadline.skip_standstill(look_seconds);
    if (deadline.passed()) fail_late(peer);
    if (options_.waits != nullptr) {
      if (const auto failure = options_.waits->look()) spread(*failure);
    }
    counter.sleep_until(target, deadline.at_most(look_seconds).remaining_seconds());
  }
}

void GroupBarrier::check_not_failed() const {
  if (const auto failed = failure()) throw_failure(*failed, doing());
}

/// Asks the larger group, which knows more: the missing rank may itself wait for another one.
void GroupBarrier::fail_late(int peer) const {
  std::vector<int> missing;
  if (options_.waits != nullptr) missing = options_.waits->missing();
  check_not_failed();
  if (missing.empty()) missing = named(missing_ranks(peer));
  fail(ErrorCode::timeout, "{} timed out after {:g} s: waiting for {}", doing(),
       options_.timeout_seconds, name_ranks(missing));
}

/// Names a rank that died before one that left: others leave because one died.
void GroupBarrier::check_alive(std::span<const int> missing) const {
  for (const int rank : missing) {
    const MemberBlock& member = members_[static_cast<std::size_t>(rank)];
    if (member.state == MemberBlock::present && has_ended(member.process)) {
      fail(ErrorCode::comm, "{}: rank {} (pid {}) is gone", doing(), name_of(rank),
           member.process.pid);
    }
  }
  for (const int rank : missing) {
    if (members_[static_cast<std::size_t>(rank)].state == MemberBlock::left) {
      fail(ErrorCode::comm, "{}: rank {} has left the group", doing(), name_of(rank));
    }
  }
}

void GroupBarrier::check_agreement() const {
  const auto slot = static_cast<std::size_t>(operations_ % 2);
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const Call& other = members_[r].announced[slot];
    if (other == current_) continue;
    fail(ErrorCode::comm, "the ranks disagree: rank {} does {}, rank {} does {}",
         name_of(options_.rank), to_string(current_), name_of(static_cast<int>(r)),
         to_string(other));
  }
}

std::vector<int> GroupBarrier::missing_ranks(int peer) const {
  if (peer != everyone) return {peer};
  std::vector<int> missing;
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) {
    const std::uint32_t arrivals = members_[static_cast<std::size_t>(r)].arrivals;
    if (static_cast<std::int32_t>(arrivals - barriers_) < 0) missing.push_back(r);
  }
  return missing;
}

int GroupBarrier::name_of(int rank) const {
  return options_.names.empty() ? rank : options_.names[static_cast<std::size_t>(rank)];
}

std::vector<int> GroupBarrier::named(std::vector<int> ranks) const {
  for (int& rank : ranks) rank = name_of(rank);
  return ranks;
}

std::string GroupBarrier::doing() const {
  return fmt::format("{} on rank {}", to_string(current_), name_of(options_.rank));
}

}  // namespace dstrain::comm
