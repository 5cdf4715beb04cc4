#pragma once
#include <utility>

#include "runtime/device/device.h"
#include "runtime/device/host_queue.h"

namespace dstrain {

/// Work of a device in order: its ops, copies and collectives, which launch it. The CPU's is a
/// queue of the host: inline, on the caller's thread, or with a thread of its own, where the first
/// exception comes out of synchronize(). Owner; hand out StreamView. Launching from several threads
/// needs a lock.
class Stream {
 public:
  using Mode = HostQueue::Mode;
  explicit Stream(Mode mode, Device device = {}) : queue_(mode), device_(device) {}

  [[nodiscard]] Device device() const noexcept { return device_; }

  // As those of HostQueue.
  template <class Task>
  void launch(Task&& task) {
    queue_.run(std::forward<Task>(task));
  }
  template <class Task>
  void launch_always(Task&& task) {
    queue_.run_always(std::forward<Task>(task));
  }
  void synchronize() { queue_.synchronize(); }
  void check() const { queue_.check(); }
  [[nodiscard]] std::exception_ptr failure() const { return queue_.failure(); }
  void wait_until_idle() noexcept { queue_.wait_until_idle(); }

 private:
  HostQueue queue_;
  Device device_;
};

/// A stream that someone else owns; what asynchronous functions take last.
class StreamView {
 public:
  StreamView(Stream& stream) noexcept : stream_(&stream) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] Device device() const noexcept { return stream_->device(); }
  template <class Task>
  void launch(Task&& task) const {
    stream_->launch(std::forward<Task>(task));
  }
  template <class Task>
  void launch_always(Task&& task) const {
    stream_->launch_always(std::forward<Task>(task));
  }
  void synchronize() const { stream_->synchronize(); }
  void check() const { stream_->check(); }
  [[nodiscard]] std::exception_ptr failure() const { return stream_->failure(); }
  void wait_until_idle() const noexcept { stream_->wait_until_idle(); }
  /// Whether both are the same stream.
  friend bool operator==(StreamView a, StreamView b) noexcept { return a.stream_ == b.stream_; }

 private:
  Stream* stream_;
};

/// Where the work of a rank runs. Communication that has a stream of its own overlaps with
/// computing; with one stream for both it does not.
struct Streams {
  Streams(StreamView both) noexcept : Streams(both, both) {}  // NOLINT(google-explicit-constructor)
  Streams(Stream& both) noexcept : Streams(both, both) {}     // NOLINT(google-explicit-constructor)
  Streams(StreamView compute_on, StreamView communicate_on) noexcept
      : compute(compute_on), communication(communicate_on) {}
  [[nodiscard]] bool overlap() const noexcept { return !(compute == communication); }
  StreamView compute;
  StreamView communication;
};

}  // namespace dstrain
