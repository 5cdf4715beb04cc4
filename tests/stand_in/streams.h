#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

namespace dstrain::stand_in {

/// The driver lock. Each CUDA call holds it, but not while it waits for work on the caller's
/// behalf. A call that loads a kernel or frees memory holds it while it waits.
class Driver {
 public:
  Driver() : lock_(mutex()) {}

 private:
  static std::mutex& mutex();
  std::unique_lock<std::mutex> lock_;
};

/// A point in a stream.
struct Moment {
  double at_ms = 0;  ///< device time when it was reached
  std::atomic<bool> reached = false;
};

/// A stream: a thread that runs its tasks in order, with drawn delays.
class Queue {
 public:
  explicit Queue(class Device& device);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  Queue(Queue&&) = delete;
  Queue& operator=(Queue&&) = delete;
  ~Queue();
  void give(std::function<void()> task);
  /// Queues a task that uses device memory. Between two such tasks the thread keeps its access.
  void give_work(std::function<void()> task);
  void wait_until_idle();
  [[nodiscard]] bool idle();

 private:
  friend class Device;
  struct Task {
    std::function<void()> run;
    bool works;
    std::chrono::microseconds late;
  };
  void give(Task task);
  void run();
  Device& device_;
  std::deque<Task> tasks_;  ///< guarded by the device's mutex, like the members below
  bool busy_ = false;
  bool ending_ = false;
  bool ended_ = false;
  std::thread thread_;
};

class Device {
 public:
  Queue& make_queue();
  /// Returns at once; the queue ends when it has run its tasks.
  void end_queue(Queue& queue);
  /// Waits for all streams.
  void wait_until_idle();
  void wait_for(const Moment& moment);
  void reach(Moment& moment);
  /// Advances the device clock, for work that takes time on a GPU but none here.
  void let_pass(double ms);
  /// At the first launch of `kernel`, waits until the device is idle. Call with the driver lock
  /// held.
  void load(const void* kernel);

 private:
  friend class Queue;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Queue> queues_;
  std::vector<const void*> loaded_;
  double passed_ms_ = 0;  ///< guarded
};

Device& device();
inline Queue& queue_of(cudaStream_t stream) {
  return *reinterpret_cast<Queue*>(stream);
}

}  // namespace dstrain::stand_in
