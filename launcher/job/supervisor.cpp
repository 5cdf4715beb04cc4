#include "launcher/job/supervisor.h"

#include <algorithm>
#include <utility>

#include <sys/wait.h>

#include "launcher/process/process.h"
#include "launcher/process/signals.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double hurry_seconds = 1;
/// Within which a host's request to stop and the end of a rank are one event. What asks and later
/// kills, as SLURM does, waits longer.
constexpr double one_event_seconds = 5;

bool is_stop_signal(int signal) {
  return std::ranges::find(stop_signals, signal) != stop_signals.end();
}

int signal_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
}

}  // namespace

Supervisor::Supervisor(const Settings& settings)
    : settings_(settings), has_ended_(static_cast<std::size_t>(settings.ranks), false) {}

Order Supervisor::stop(double now, double grace_seconds) {
  if (phase_ != Phase::running) return Order::none;
  phase_ = Phase::stopping;
  deadline_ = now + grace_seconds;
  return Order::terminate;
}

/// The rest of the job cannot save a whole checkpoint.
Order Supervisor::crash(double now) {
  return stop(now, settings_.crash_grace_seconds);
}

Order Supervisor::ask(double now) {
  gets_time_ |= phase_ == Phase::running;
  return stop(now, settings_.stop_grace_seconds);
}

void Supervisor::save_moved(double now) {
  if (phase_ != Phase::stopping || !gets_time_) return;
  deadline_ = std::max(deadline_.value_or(now), now + settings_.stop_grace_seconds);
}

Order Supervisor::kill(double now) {
  if (killing()) return Order::none;
  phase_ = Phase::killing;
  deadline_ = now + settings_.kill_grace_seconds;
  return Order::kill;
}

/// A rank whose peer went away ends with status 1, or, where nothing tells it, with that of a
/// timeout. Its end may be known before the peer's is, which was on another host; a signal that we
/// did not send, or the loss of a host, is then the cause.
bool Supervisor::may_be_a_consequence() const {
  const bool open = phase_ == Phase::stopping || phase_ == Phase::killing;
  if (!open || !failure_ || stop_signal_) return false;
  const int status = shell_status(failure_->wait_status);
  return status == status::failed || status == status::timed_out;
}

/// mpirun asks all hosts to stop when a rank of MPI's is killed; that may come to hosts before the
/// rank's end is known.
bool Supervisor::may_have_ended_others() const {
  return phase_ == Phase::stopping && !failure_ && only_a_host_asked();
}

Order Supervisor::rank_exited(const Exit& exit, double now) {
  if (has_ended_[index(exit.rank)]) return Order::none;
  has_ended_[index(exit.rank)] = true;
  ++ended_;
  const int status = shell_status(exit.wait_status);
  if (status == status::stopped_with_checkpoint) ++ended_with_checkpoint_;
  if (status == status::done) ++ended_well_;
  const RankFailure failure{exit.rank, exit.wait_status, exit.kill_cause};
  const int signal = signal_of(exit.wait_status);
  const bool killed_by_us = signal == SIGTERM || phase_ == Phase::killing;
  const bool ended_others = may_have_ended_others() && signal != 0 && !is_stop_signal(signal);
  if (ended_others || (may_be_a_consequence() && signal != 0 && !killed_by_us)) failure_ = failure;
  failure_explains_ask_ |= ended_others && now - host_asked_at_ < one_event_seconds;
  if (status == status::done || phase_ != Phase::running) return Order::none;
  failure_ = failure;
  // A rank that was asked to stop has not crashed: the others save too and get the time for it.
  const bool stopped = status == status::stopped_with_checkpoint || status == 128 + SIGINT ||
                       status == 128 + SIGTERM || status == 128 + SIGUSR1;
  rank_asked_ = stopped;
  return stopped ? ask(now) : crash(now);
}

Order Supervisor::host_lost(int first_rank, int ranks, double now) {
  for (int rank = first_rank; rank < first_rank + ranks; ++rank) {
    if (!has_ended_[index(rank)]) ++ended_;
    has_ended_[index(rank)] = true;
  }
  if (may_be_a_consequence() && !failure_explains_losses()) {
    failure_.reset();
    lost_ = true;
  }
  lost_ |= phase_ == Phase::running;
  return crash(now);
}

Order Supervisor::starter_killed(double now) {
  lost_ |= phase_ == Phase::running;
  return stop(now, settings_.crash_grace_seconds);
}

Order Supervisor::launch_failed(double now) {
  launch_failed_ = true;
  return crash(now);
}

void Supervisor::note_stop_signal(int signal) {
  const bool has_cause = failure_ || lost_ || launch_failed_;
  if (!stop_signal_ && !has_cause && !all_ended()) stop_signal_ = signal;
}

Order Supervisor::host_asked_to_stop(int signal, double now) {
  if (!std::exchange(host_asked_, true)) host_asked_at_ = now;
  if (rank_asked_ && failure_ && is_stop_signal(signal_of(failure_->wait_status))) failure_.reset();
  failure_explains_ask_ |= failure_ && !rank_asked_;
  note_stop_signal(signal);
  return ask(now);
}

Order Supervisor::stop_requested(int signal, double now) {
  note_stop_signal(signal);
  ++stop_requests_;
  if (stop_requests_ == 1 && phase_ == Phase::running) return ask(now);
  // The same request, which reached a host or a rank before this process.
  const bool repeats = stop_requests_ == 1 && (host_asked_ || rank_asked_);
  if (repeats && phase_ == Phase::stopping) return Order::none;
  gets_time_ = false;
  if (stop_requests_ >= 3) {
    if (phase_ != Phase::killing) return kill(now);
    deadline_ = std::min(deadline_.value_or(now), now + hurry_seconds);
    return Order::none;
  }
  if (phase_ != Phase::stopping) return Order::none;
  deadline_ = std::min(deadline_.value_or(now), now + hurry_seconds);
  return Order::terminate;
}

Order Supervisor::tick(double now) {
  if (!deadline_ || now < *deadline_) return Order::none;
  if (phase_ == Phase::stopping) return kill(now);
  deadline_.reset();
  if (phase_ != Phase::killing) return Order::none;
  phase_ = Phase::abandoned;
  return Order::abandon;
}

bool Supervisor::failed_by_itself() const {
  if (!failure_) return false;
  const int status = shell_status(failure_->wait_status);
  return status == status::failed || status == status::could_not_launch ||
         status == status::timed_out;
}

int Supervisor::exit_status() const {
  if (launch_failed_) return status::could_not_launch;
  if (failure_) return shell_status(failure_->wait_status);
  if (stop_signal_) {
    if (ended_well_ == settings_.ranks) return status::done;  // before the signal came
    if (killed_a_save()) return status::unsaved;
    const bool all_saved = ended_with_checkpoint_ == settings_.ranks;
    return all_saved ? status::stopped_with_checkpoint : 128 + *stop_signal_;
  }
  return all_ended() && !lost_ ? status::done : status::failed;
}

}  // namespace dstrain::launcher
