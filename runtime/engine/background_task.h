#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "runtime/device/host_queue.h"

namespace dstrain::engine {

/// Runs one task at a time on a thread of its own, which sleeps in between, and tells how it went.
/// One thread asks. The destructor waits for the task.
class BackgroundTask {
 public:
  enum class State : std::uint8_t { idle, busy, failed };

  /// Begins `task`, which fails by throwing; none may be busy.
  void start(std::function<void()> task);
  /// Notes a failure without a task.
  void fail(std::string message);
  /// Forgets a failure.
  void reset();

  [[nodiscard]] State state() const;
  /// What the last failure said; empty without one.
  [[nodiscard]] std::string failure() const;
  /// Waits until no task is busy, at most so long.
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
