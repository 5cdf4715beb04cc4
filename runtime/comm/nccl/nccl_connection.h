#pragma once
#include <mutex>

#include "runtime/base/deadline.h"
#include "runtime/comm/checked_call.h"
#include "runtime/comm/nccl/nccl_library.h"

namespace dstrain::comm {

/// NCCL calls that are allowed while a connection is not aborted.
struct NcclCalls {
  const NcclApi& api;
  ncclComm_t comm;
  /// Throws Error{comm} that names the function, unless the call has succeeded or is in progress.
  void require(ncclResult_t result, const char* function) const;
};

/// A non-blocking NCCL communicator: a call starts an operation and waits for no other rank.
/// Thread-safe, for the threads that launch, watch and abort: NCCL accepts calls from one thread at
/// a time.
class NcclConnection {
 public:
  explicit NcclConnection(int gpu) : gpu_(gpu) {}
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;
  NcclConnection(NcclConnection&&) = delete;
  NcclConnection& operator=(NcclConnection&&) = delete;
  /// Aborts, unless it is closed.
  ~NcclConnection();

  /// Returns once all ranks are connected, or abort() has been called. Throws Error{comm}.
  void connect(const ncclUniqueId& id, GroupRank own);
  /// Passes NcclCalls to `launch` and returns once the started operations are on their streams.
  /// Does nothing, or stops, after abort(). Throws Error{comm}.
  template <class Launch>
  void call(const Launch& launch) {
    {
      const std::lock_guard lock(mutex_);
      if (comm_ == nullptr) return;
      launch(NcclCalls{nccl().value(), comm_});
    }
    settle("a collective", Deadline::after(no_limit_seconds));
  }
  /// Throws Error{comm} if NCCL itself has detected an error.
  void check();
  /// Call in a thread that may abort: makes the GPU current there.
  void enter_thread() const;
  /// Ends running operations, on the GPU too; later calls do nothing. Makes no CUDA call before
  /// NCCL has told the GPU to stop, because such a call might wait for the GPU.
  void abort() noexcept;
  /// Call when nothing is running. Throws Error{comm}, or Error{timeout} if its streams do not end
  /// within some seconds. Freeing then waits for ranks of this machine.
  void close();

 private:
  static constexpr double no_limit_seconds = 1e9;
  void settle(const char* what, Deadline deadline);
  /// Whether all calls are done; also true after abort().
  bool settled(const char* what);

  int gpu_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  ///< guarded; null: not connected yet, aborted or closed
  bool aborted_ = false;       ///< guarded; may come before connect()
};

}  // namespace dstrain::comm

/// Calls an NCCL function through `calls`, an NcclCalls, and requires that it succeeds.
#define DSTRAIN_NCCL_CHECK(calls, function, ...) \
  (calls).require((calls).api.function(__VA_ARGS__), #function)
