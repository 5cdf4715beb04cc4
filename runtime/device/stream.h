#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/device/device.h"

namespace dstrain {

class StreamWorker;

/// Work in order. A CPU stream either runs what it is given inline, on the caller's thread, or on
/// a worker thread of its own; the worker keeps the first exception for synchronize() and until
/// then drops what comes after it, except launch_always(). Owner; hand out StreamView. Launching
/// from several threads needs a lock.
class Stream {
 public:
  enum class Mode { inline_on_caller, worker_thread };
  explicit Stream(Mode mode, Device device = {});
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream(Stream&&) = delete;
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  [[nodiscard]] Device device() const noexcept { return device_; }

  /// Runs `task` after everything launched before it. Returns at once on a worker stream.
  template <class Task>
  void launch(Task&& task) {
    if (worker_ == nullptr) {
      task();
    } else {
      enqueue(std::forward<Task>(task), OnFailure::skip);
    }
  }

  /// The same for work that must be done after a failure too: to release memory, to pass an event.
  template <class Task>
  void launch_always(Task&& task) {
    if (worker_ == nullptr) {
      task();
    } else {
      enqueue(std::forward<Task>(task), OnFailure::run);
    }
  }

  /// Blocks until all launched work is done; rethrows the first exception of the worker.
  void synchronize();

  /// Rethrows the first exception of the worker, if there is one by now, and keeps it: for who
  /// waits for an event and wants to hear at once that the work before it has failed.
  void check() const;

  /// Blocks until all launched work is done or dropped. Throws nothing and keeps a failure: for
  /// owners of memory that the work uses.
  void wait_until_idle() noexcept;

 private:
  friend class StreamWorker;
  enum class OnFailure : std::uint8_t { skip, run };
  void enqueue(std::function<void()> task, OnFailure on_failure);

  Device device_;
  std::unique_ptr<StreamWorker> worker_;
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

/// A point in a stream's work that another stream can wait for. Copies share the point. A stream
/// reaches it after a failure too: nobody waits for ever, and synchronize() of that stream throws.
class Event {
 public:
  /// The point after all that `stream` was given so far.
  static Event record(StreamView stream);
  /// Work launched on `stream` from now on runs after this point.
  void wait_on(StreamView stream) const;

 private:
  struct State;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;  // shared: both streams may outlive the caller's copy
};

}  // namespace dstrain
