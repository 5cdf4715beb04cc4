#pragma once
#include <memory>
#include <utility>

#include "runtime/device/host_queue.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// A stream of the CPU as a device: functions on a host queue, either inline on the caller's thread
/// or on its own thread.
class CpuStream final : public Stream {
 public:
  using Mode = HostQueue::Mode;
  explicit CpuStream(Mode mode) : Stream(Device{}), queue_(mode) {}

  // As in HostQueue.
  template <class Task>
  void launch(Task&& task) {
    queue_.run(std::forward<Task>(task));
  }
  template <class Task>
  void launch_always(Task&& task) {
    queue_.run_always(std::forward<Task>(task));
  }
  void synchronize() override { queue_.synchronize(); }
  [[nodiscard]] std::exception_ptr failure() const override { return queue_.failure(); }
  void wait_until_idle() noexcept override { queue_.wait_until_idle(); }

  /// Data that a library of ops keeps for the work of one stream: prepared products, scratch.
  class Kept {
   public:
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    Kept(Kept&&) = delete;
    Kept& operator=(Kept&&) = delete;
    virtual ~Kept() = default;
  };
  /// Returns the stream's only T, made on first use. For code that launches.
  template <class T>
  T& kept() {
    if (kept_ == nullptr) kept_ = std::make_unique<T>();
    return dynamic_cast<T&>(*kept_);
  }

 private:
  std::shared_ptr<EventPoint> record() override;
  void wait_for(std::shared_ptr<EventPoint> point) override;

  std::unique_ptr<Kept> kept_;
  HostQueue queue_;  // its work uses the other members, so it is destroyed first
};

}  // namespace dstrain
