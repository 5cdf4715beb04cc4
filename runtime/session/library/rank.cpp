#include <atomic>
#include <cstdlib>

#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/session/library/impl.h"
#include "runtime/session/version.h"

namespace dstrain {
namespace {

/// Lines look as those of dstrain's own ranks.
void prepare_log() {
  const char* const level = std::getenv(env::log_level);
  start_log(level != nullptr ? level : "info");
}

void claim_process() {
  static std::atomic<bool> taken{false};
  if (!taken.exchange(true)) return;
  fail(ErrorCode::usage,
       "this process has or had a dstrain::Rank already: make one, and use it for all engines");
}

WorkerEnv prepare(ProgressPage& progress) {
  session::require_core("libdstrain.so", DSTRAIN_VERSION);
  session::require_launcher("libdstrain.so", DSTRAIN_VERSION);
  claim_process();
  prepare_log();
  progress.enter(RunPhase::starting);
  WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  return worker;
}

session::JoinedRank join(ProgressPage& progress) {
  const WorkerEnv worker = prepare(progress);
  return {worker, resolve_device(worker.device), progress, session::JoinedRank::Sessions::several};
}

}  // namespace

Rank::Impl::Impl() : joined(join(progress)) {}

Rank::Rank() : impl_(std::make_unique<Impl>()) {}
Rank::Rank(Rank&&) noexcept = default;
Rank& Rank::operator=(Rank&&) noexcept = default;
Rank::~Rank() = default;

int Rank::rank() const {
  return impl_->joined.worker().rank;
}

int Rank::world_size() const {
  return impl_->joined.worker().world_size;
}

int Rank::local_rank() const {
  return impl_->joined.worker().local_rank;
}

std::string Rank::device() const {
  return std::string(name_of(impl_->joined.backend().device().kind));
}

bool Rank::stop_requested() {
  impl_->signals.keep();
  return impl_->any(session::Call::stop_requested, impl_->signals.arrived() != 0);
}

bool Rank::save_requested() {
  RankControl& control = impl_->joined.control();
  return impl_->any(session::Call::save_requested,
                    control.newest_save_request() != control.answered_save_request());
}

void Rank::barrier() {
  (void)impl_->any(session::Call::barrier, false);
}

}  // namespace dstrain
