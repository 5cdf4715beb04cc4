#include "runtime/comm/meeting.h"

#include <exception>
#include <thread>

#include <unistd.h>

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

/// Some 10 us of looking before sleeping: a peer that is about to arrive costs no system call.
constexpr int spins_before_sleep = 400;
/// How often a sleeping rank looks whether the group was aborted or a rank left.
constexpr double look_seconds = 0.05;
/// How often it looks into /proc whether the missing ranks still live.
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

Meeting::Meeting(GroupBlock& group, std::span<MemberBlock> members, Options options)
    : group_(group),
      members_(members),
      options_(options),
      // With more ranks than cores, spinning would keep the awaited rank from running. Cores of the
      // machine, because a thread's affinity may be narrowed to one of them.
      spins_(static_cast<long>(members.size()) <= ::sysconf(_SC_NPROCESSORS_ONLN)
                 ? spins_before_sleep
                 : 0) {
  MemberBlock& own = members_[static_cast<std::size_t>(options_.rank)];
  own.process = this_process();
  own.state = MemberBlock::present;
}

Meeting::~Meeting() {
  // A rank that fails does not say that it leaves: its peers see the process end, and the launcher
  // sees it before them, so that the culprit is named and not those who missed it.
  if (std::uncaught_exceptions() > 0) return;
  MemberBlock& own = members_[static_cast<std::size_t>(options_.rank)];
  own.state = MemberBlock::left;
  futex_wake_all(own.arrivals.count);
}

void Meeting::announce(const Call& call) {
  current_ = call;
  check_not_aborted();
  MemberBlock& own = members_[static_cast<std::size_t>(options_.rank)];
  own.announced[static_cast<std::size_t>(++operations_ % 2)] = call;
}

void Meeting::meet() {
  tick();
  check_agreement();
}

void Meeting::tick() {
  ++ticks_;
  members_[static_cast<std::size_t>(options_.rank)].arrivals.raise();
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) {
    if (r == options_.rank) continue;
    wait(members_[static_cast<std::size_t>(r)].arrivals, ticks_, r, Awaited::everyone);
  }
}

void Meeting::announce_pairwise(const Call& call) {
  current_ = call;
  check_not_aborted();
}

void Meeting::wait_for_peer(Signal& signal, std::uint32_t target, int peer) {
  wait(signal, target, peer, Awaited::peer);
}

void Meeting::check_message(const Call& sent) {
  if (sent.numel == current_.numel && sent.dtype == current_.dtype) return;
  abort();
  fail(ErrorCode::comm, "the ranks disagree: rank {} does {}, rank {} does {}", options_.rank,
       to_string(current_), current_.peer, to_string(sent));
}

void Meeting::abort() noexcept {
  std::int32_t nobody = 0;
  group_.aborted_by.compare_exchange_strong(nobody, options_.rank + 1);
  for (const MemberBlock& member : members_) futex_wake_all(member.arrivals.count);
}

void Meeting::wait(Signal& signal, std::uint32_t target, int peer, Awaited awaited) {
  for (int i = 0; i < spins_ && !signal.reached(target); ++i) pause_briefly();
  if (signal.reached(target)) return;
  const Deadline deadline = Deadline::after(options_.timeout_seconds);
  Deadline liveness = Deadline::after(liveness_seconds);
  const MemberBlock& member = members_[static_cast<std::size_t>(peer)];
  while (true) {
    check_not_aborted();
    const bool left = member.state == MemberBlock::left;
    if (signal.reached(target)) return;  // looked at last: it may have arrived and left since
    if (left || liveness.passed()) {
      const std::vector<int> missing = missing_ranks(peer, awaited);
      check_alive(missing);
      liveness = Deadline::after(liveness_seconds);
    }
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "{} timed out after {:g} s: waiting for {}", doing(),
           options_.timeout_seconds, name_ranks(missing_ranks(peer, awaited)));
    }
    signal.sleep_until(target, deadline.at_most(look_seconds).remaining_seconds());
  }
}

void Meeting::check_not_aborted() const {
  const std::int32_t by = group_.aborted_by.load();
  if (by != 0) fail(ErrorCode::aborted, "{}: aborted by rank {}", doing(), by - 1);
}

/// A rank that died comes before one that left: others leave because one died.
void Meeting::check_alive(std::span<const int> missing) const {
  for (const int rank : missing) {
    const MemberBlock& member = members_[static_cast<std::size_t>(rank)];
    if (member.state == MemberBlock::present && has_ended(member.process)) {
      fail(ErrorCode::comm, "{}: rank {} (pid {}) is gone", doing(), rank, member.process.pid);
    }
  }
  for (const int rank : missing) {
    if (members_[static_cast<std::size_t>(rank)].state == MemberBlock::left) {
      fail(ErrorCode::comm, "{}: rank {} has left the group", doing(), rank);
    }
  }
}

void Meeting::check_agreement() const {
  const auto slot = static_cast<std::size_t>(operations_ % 2);
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const Call& other = members_[r].announced[slot];
    if (other == current_) continue;
    fail(ErrorCode::comm, "the ranks disagree in operation {}: rank {} does {}, rank {} does {}",
         operations_, options_.rank, to_string(current_), r, to_string(other));
  }
}

std::vector<int> Meeting::missing_ranks(int peer, Awaited awaited) const {
  if (awaited == Awaited::peer) return {peer};
  std::vector<int> missing;
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) {
    if (!members_[static_cast<std::size_t>(r)].arrivals.reached(ticks_)) missing.push_back(r);
  }
  return missing;
}

std::string Meeting::doing() const {
  return fmt::format("{} (operation {}) on rank {}", to_string(current_), operations_,
                     options_.rank);
}

}  // namespace dstrain::comm
