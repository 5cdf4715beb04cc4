#include "runtime/comm/nccl/nccl_connection.h"

#include <string>
#include <utility>

#include <sched.h>
#include <time.h>

#include "runtime/base/log.h"
#include "runtime/device/cuda/cuda_check.h"

namespace dstrain::comm {
namespace {

/// How long NCCL may take to leave the other ranks.
constexpr double close_seconds = 10;

/// Polls that only yield, before polls that sleep.
constexpr int eager_looks = 100;
constexpr long sleep_ns = 50'000;

void rest_after(int looks) {
  if (looks < eager_looks) {
    ::sched_yield();
  } else {
    const timespec time{0, sleep_ns};
    ::nanosleep(&time, nullptr);
  }
}

}  // namespace

void NcclCalls::require(ncclResult_t result, const char* function) const {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const detail = api.ncclGetLastError(comm);
  const std::string known = detail == nullptr ? "" : detail;
  fail(ErrorCode::comm, "{}: {}{}{} (NCCL_DEBUG=WARN tells more)", function,
       api.ncclGetErrorString(result), known.empty() ? "" : ": ", known);
}

void NcclConnection::enter_thread() const {
  cuda::use_gpu(gpu_);
}

NcclConnection::~NcclConnection() {
  abort();
}

void NcclConnection::connect(const ncclUniqueId& id, GroupRank own) {
  cuda::use_gpu(gpu_);
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const NcclApi& api = nccl().value();
    const ncclResult_t result = api.ncclCommInitRankConfig(&comm_, own.size, id, own.rank, &config);
    NcclCalls{api, comm_}.require(result, "ncclCommInitRankConfig");
  }
  settle("ncclCommInitRankConfig", Deadline::after(no_limit_seconds));
}

bool NcclConnection::settled(const char* what) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return true;
  const NcclCalls calls{nccl().value(), comm_};
  ncclResult_t state = ncclSuccess;
  DSTRAIN_NCCL_CHECK(calls, ncclCommGetAsyncError, comm_, &state);
  calls.require(state, what);
  return state == ncclSuccess;
}

void NcclConnection::settle(const char* what, Deadline deadline) {
  for (int looks = 0; !settled(what); ++looks) {
    if (deadline.passed()) fail(ErrorCode::timeout, "{} is not done after a while", what);
    rest_after(looks);
  }
}

void NcclConnection::check() {
  settled("NCCL");
}

void NcclConnection::abort() noexcept {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (comm_ == nullptr) return;
  const NcclApi& api = nccl().value();
  const ncclResult_t result = api.ncclCommAbort(std::exchange(comm_, nullptr));
  if (result != ncclSuccess && result != ncclInProgress) {
    log_warning(fmt::format("ncclCommAbort: {}", api.ncclGetErrorString(result)));
  }
}

void NcclConnection::close() {
  cuda::use_gpu(gpu_);
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    const NcclCalls calls{nccl().value(), comm_};
    DSTRAIN_NCCL_CHECK(calls, ncclCommFinalize, comm_);
  }
  settle("ncclCommFinalize", Deadline::after(close_seconds));
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  const NcclCalls calls{nccl().value(), std::exchange(comm_, nullptr)};
  DSTRAIN_NCCL_CHECK(calls, ncclCommDestroy, calls.comm);
}

}  // namespace dstrain::comm
