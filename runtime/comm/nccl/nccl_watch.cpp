#include "runtime/comm/nccl/nccl_watch.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "runtime/comm/group_barrier.h"

namespace dstrain::comm {
namespace {

/// How often the ranks exchange their progress.
constexpr double look_seconds = 0.2;

bool is_message(const Call& call) {
  return call.operation == Operation::send || call.operation == Operation::receive;
}

}  // namespace

NcclWatch::NcclWatch(std::unique_ptr<ControlGroup> control,
                     NcclConnection& connection,
                     double timeout_seconds)
    : control_(std::move(control)),
      connection_(connection),
      timeout_seconds_(timeout_seconds),
      thread_([this] { run(); }) {}

NcclWatch::~NcclWatch() {
  stop(false);
}

void NcclWatch::begin(const Call& call) {
  const std::lock_guard lock(mutex_);
  running_ = Running{call, Deadline::after(timeout_seconds_)};
  if (is_message(call)) return;
  ++own_.begun;
  own_.call = call;
}

void NcclWatch::end() {
  const std::lock_guard lock(mutex_);
  running_.reset();
}

/// Sets the failure before the work ends, so that all waiters see it.
void NcclWatch::fail_with(const GroupFailure& failure) noexcept {
  failure_->set(std::make_exception_ptr(Error(failure.code, failure.why)));
  control_->spread(failure);
  connection_.abort();
}

void NcclWatch::abort() noexcept {
  const std::string why = fmt::format("aborted by rank {}", control_->rank());
  failure_->set(std::make_exception_ptr(Error(ErrorCode::aborted, doing(why))));
  fail_with({ErrorCode::aborted, why});
}

void NcclWatch::leave() {
  stop(true);
}

void NcclWatch::stop(bool tells) noexcept {
  {
    const std::lock_guard lock(mutex_);
    own_.leaves = tells ? 1 : 0;
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void NcclWatch::run() {
  try {
    connection_.enter_thread();
    while (look()) rest();
  } catch (const Error& error) {
    fail_with({error.code(), error.what()});
  }
}

/// Waits until the next look.
void NcclWatch::rest() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(look_seconds),
                    [this] { return stopping_; });
}

/// Returns the messages of all ranks. A failure that this rank detects is reported for the
/// collective that it is in; a failure that another rank has detected and spread is reported
/// unchanged.
std::vector<NcclWatch::Told> NcclWatch::exchange(const Told& own) {
  try {
    return control_->gather(own);
  } catch (const Error& error) {
    const std::string why = error.what();
    const Call call{Operation::gather, DType::u8, 0, sizeof(Told)};
    const std::string found_here =
        fmt::format("{} on rank {}: ", to_string(call), control_->rank());
    if (!why.starts_with(found_here)) throw;
    throw Error(error.code(), doing(why.substr(found_here.size())));
  }
}

/// Returns whether to look again.
bool NcclWatch::look() {
  Told own;
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    own = own_;
    last = stopping_;
    if (running_) running_->deadline.skip_standstill(look_seconds);
  }
  if (last && own.leaves == 0) return false;
  if (!last_.empty()) {  // a rank has left: its last message stays valid, and no rank sends more
    last_[static_cast<std::size_t>(control_->rank())] = own;
    look_at(last_);
    return !last;
  }
  std::vector<Told> all = exchange(own);
  look_at(all);
  const bool all_stay = std::ranges::all_of(all, [](const Told& told) { return told.leaves == 0; });
  if (!all_stay) last_ = std::move(all);
  return !last;
}

void NcclWatch::look_at(std::span<const Told> all) {
  check_agreement(all);
  check_time(all);
  try {
    connection_.check();
  } catch (const Error& error) {
    throw Error(error.code(), doing(error.what()));
  }
}

void NcclWatch::check_agreement(std::span<const Told> all) const {
  const int rank = control_->rank();
  const Told& own = all[static_cast<std::size_t>(rank)];
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Told& other = all[r];
    if (other.leaves != 0 && other.begun < own.begun) {
      fail(ErrorCode::comm, "{} on rank {}: rank {} has left the group", to_string(own.call), rank,
           r);
    }
    if (other.begun != own.begun || other.call == own.call) continue;
    fail(ErrorCode::comm, "the ranks disagree: rank {} does {}, rank {} does {}", rank,
         to_string(own.call), r, to_string(other.call));
  }
}

void NcclWatch::check_time(std::span<const Told> all) const {
  const std::lock_guard lock(mutex_);
  if (!running_ || !running_->deadline.passed()) return;
  std::vector<int> missing;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].begun < own_.begun) missing.push_back(static_cast<int>(r));
  }
  if (is_message(running_->call)) missing = {running_->call.peer};
  fail(ErrorCode::timeout, "{} on rank {} timed out after {:g} s: {}", to_string(running_->call),
       control_->rank(), timeout_seconds_,
       missing.empty() ? "all ranks have begun it, and NCCL does not end it"
                       : "waiting for " + name_ranks(missing));
}

/// Adds the operation that the rank is in.
std::string NcclWatch::doing(const std::string& why) const {
  const std::lock_guard lock(mutex_);
  if (!running_) return why;
  return fmt::format("{} on rank {}: {}", to_string(running_->call), control_->rank(), why);
}

}  // namespace dstrain::comm
