#pragma once
#include <mutex>

#include "runtime/base/deadline.h"
#include "runtime/comm/checked_call.h"
#include "runtime/comm/nccl/nccl_library.h"

namespace dstrain::comm {

/// What may be called while a connection is not aborted meanwhile.
struct NcclCalls {
  const NcclApi& api;
  ncclComm_t comm;
  /// Throws Error{comm} that names the function, unless it is done or under way.
  void require(ncclResult_t result, const char* function) const;
};

/// A communicator of NCCL's own, one that does not block: a call begins something, and waits for no
/// other rank. Thread-safe, for who launches, who watches and who aborts: NCCL takes calls of one
/// thread at a time.
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
  /// Gives NcclCalls to `launch` and returns once what that has called lies on its streams; does
  /// nothing, or no more, after abort(). Throws Error{comm}.
  template <class Launch>
  void call(const Launch& launch) {
    {
      const std::lock_guard lock(mutex_);
      if (comm_ == nullptr) return;
      launch(NcclCalls{nccl().value(), comm_});
    }
    settle("a collective", Deadline::after(no_limit_seconds));
  }
  /// Throws Error{comm} where NCCL has found by itself that something is wrong.
  void check();
  /// To be called by a thread that is to abort: its calls are about the GPU then.
  void enter_thread() const;
  /// Ends what runs, on the GPU too, and all later calls do nothing. Before NCCL has told the GPU,
  /// no call of CUDA's is made, which might wait for it.
  void abort() noexcept;
  /// When nothing runs any more. Throws Error{comm}, or Error{timeout} where its
  /// streams do not end after some seconds. What it frees then waits for ranks of this machine.
  void close();

 private:
  static constexpr double no_limit_seconds = 1e9;
  void settle(const char* what, Deadline deadline);
  /// Whether all that was called is done; also after abort().
  bool settled(const char* what);

  int gpu_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  ///< guarded; null: not connected yet, aborted or closed
  bool aborted_ = false;       ///< guarded; may come before connect()
};

}  // namespace dstrain::comm

/// Calls a function of NCCL's through `calls`, an NcclCalls, and requires that it goes well.
#define DSTRAIN_NCCL_CHECK(calls, function, ...) \
  (calls).require((calls).api.function(__VA_ARGS__), #function)
