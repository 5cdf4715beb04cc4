#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "runtime/device/host_queue.h"

namespace dstrain::engine {

/// Runs one task at a time on its own thread, which sleeps in between, and reports the result. For
/// one calling thread. The destructor waits for the task.
class BackgroundTask {
 public:
  enum class State : std::uint8_t { idle, busy, failed };

  /// Begins `task`, which fails by throwing. No task may be busy.
  void start(std::function<void()> task);
  /// Records a failure without running a task.
  void fail(std::string message);
  /// Forgets a failure.
  void reset();

  [[nodiscard]] State state() const;
  /// The message of the last failure; empty if there was none.
  [[nodiscard]] std::string failure() const;
  /// Waits until no task is busy, for at most `seconds_max`.
  void wait(double seconds_max) const;

 private:
  void finish(State state, std::string failure);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::idle;
  std::string failure_;
  HostQueue thread_{HostQueue::Mode::worker_thread};
};

}  // namespace dstrain::engine
