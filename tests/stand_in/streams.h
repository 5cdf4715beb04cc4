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

/// Held by each call of CUDA's while it is under way, but not while it waits for work that the
/// caller asked to wait for. A call that loads a kernel or gives memory back keeps it.
class Driver {
 public:
  Driver() : lock_(mutex()) {}

 private:
  static std::mutex& mutex();
  std::unique_lock<std::mutex> lock_;
};

/// A point in a stream.
struct Moment {
  double at_ms = 0;                   ///< when it was reached, by the clock of the device,
  std::atomic<bool> reached = false;  ///< from then on
};

/// A stream: a thread that does what it is given, in order, late where that is drawn.
class Queue {
 public:
  explicit Queue(class Device& device);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  Queue(Queue&&) = delete;
  Queue& operator=(Queue&&) = delete;
  ~Queue();
  void give(std::function<void()> task);
  /// A task that uses memory of the device: between two of them access is not given up.
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
  std::deque<Task> tasks_;  ///< guarded by the device, as all below
  bool busy_ = false;
  bool ending_ = false;
  bool ended_ = false;
  std::thread thread_;
};

class Device {
 public:
  Queue& make_queue();
  /// Returns at once; the queue ends when it has done what it was given.
  void end_queue(Queue& queue);
  /// All streams.
  void wait_until_idle();
  void wait_for(const Moment& moment);
  void reach(Moment& moment);
  /// Sets its clock forward: what takes time on a GPU takes none here.
  void let_pass(double ms);
  /// Waits until all is idle where `kernel` is launched for the first time. Under the driver's
  /// lock.
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
