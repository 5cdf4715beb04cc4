#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace dstrain {

/// Functions of the host in order, for what must not run on a stream of a device: what blocks, does
/// I/O or throws. They run inline, on the caller's thread, or on a thread of the queue's own; that
/// keeps the first exception for synchronize() and until then drops what comes after it, except
/// run_always(). Giving it work from several threads needs a lock. Events (event.h) order it with
/// streams and other queues. Owner.
class HostQueue {
 public:
  enum class Mode {
    inline_on_caller,
    worker_thread,   ///< which helps a caller that computes: its loops run on it alone
    compute_thread,  ///< with as many compute threads as the caller, which does not use them now
  };
  explicit HostQueue(Mode mode);
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;
  HostQueue(HostQueue&&) = delete;
  HostQueue& operator=(HostQueue&&) = delete;
  /// Finishes the work.
  ~HostQueue();

  /// Runs `task` after everything given before it. Returns at once with a thread of its own.
  template <class Task>
  void run(Task&& task) {
    if (thread_ == nullptr) {
      task();
    } else {
      enqueue(std::forward<Task>(task), OnFailure::skip);
    }
  }

  /// The same for work that must be done after a failure too: to release memory, to pass an event.
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

  /// The first exception of the thread, which it keeps; null: none by now.
  [[nodiscard]] std::exception_ptr failure() const;

  /// Blocks until all work is done or dropped. Throws nothing and keeps a failure: for owners of
  /// memory that the work uses.
  void wait_until_idle() noexcept;

 private:
  class Thread;
  enum class OnFailure : std::uint8_t { skip, run };
  void enqueue(std::function<void()> task, OnFailure on_failure);

  std::unique_ptr<Thread> thread_;  ///< null: inline
};

}  // namespace dstrain
