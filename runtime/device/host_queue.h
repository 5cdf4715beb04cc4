#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace dstrain {

/// Runs host functions in order, for work that must not run on a stream of a device: it blocks,
/// does I/O or throws. They run inline on the caller's thread, or on the queue's own thread. That
/// thread keeps the first exception for synchronize() and drops later work until then, except
/// run_always(). Giving it work from several threads needs a lock. Events (event.h) order it with
/// streams and other queues. Owner.
class HostQueue {
 public:
  enum class Mode {
    inline_on_caller,
    worker_thread,   ///< supports a caller that computes: its loops run on this thread only
    compute_thread,  ///< with as many compute threads as the caller, which does not use them now
  };
  explicit HostQueue(Mode mode);
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;
  HostQueue(HostQueue&&) = delete;
  HostQueue& operator=(HostQueue&&) = delete;
  /// Finishes the work.
  ~HostQueue();

  /// Runs `task` after all earlier ones. Returns at once if the queue has its own thread.
  template <class Task>
  void run(Task&& task) {
    if (thread_ == nullptr) {
      task();
    } else {
      enqueue(std::forward<Task>(task), OnFailure::skip);
    }
  }

  /// The same for work that must also run after a failure: releasing memory, passing an event.
  template <class Task>
  void run_always(Task&& task) {
    if (thread_ == nullptr) {
      task();
    } else {
      enqueue(std::forward<Task>(task), OnFailure::run);
    }
  }

  /// Blocks until all work is done; rethrows the first exception of the thread.
  void synchronize();

  /// Returns the first exception of the thread, which keeps it; null: none so far.
  [[nodiscard]] std::exception_ptr failure() const;

  /// Blocks until all work is done or dropped. Does not throw, and keeps a failure: for owners of
  /// memory that the work uses.
  void wait_until_idle() noexcept;

 private:
  class Thread;
  enum class OnFailure : std::uint8_t { skip, run };
  void enqueue(std::function<void()> task, OnFailure on_failure);

  std::unique_ptr<Thread> thread_;  ///< null: inline
};

}  // namespace dstrain
