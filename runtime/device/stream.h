#pragma once
#include <exception>
#include <memory>

#include "runtime/device/device.h"

namespace dstrain {

/// The shared state of an Event: a point in the work of a stream or a queue.
class EventPoint {
 public:
  EventPoint() = default;
  EventPoint(const EventPoint&) = delete;
  EventPoint& operator=(const EventPoint&) = delete;
  EventPoint(EventPoint&&) = delete;
  EventPoint& operator=(EventPoint&&) = delete;
  virtual ~EventPoint() = default;
  /// Blocks until the point is reached; rethrows the failure that came before it, if any.
  virtual void wait() = 0;
};

/// Runs the work of a device in order: its ops, copies and collectives, which launch it in the
/// device's own way (cpu_stream_access.h). Nothing else can be launched. synchronize() throws the
/// first failure; until then later work is dropped. Owner; pass StreamView to others. Launching
/// from several threads needs a lock.
class Stream {
 public:
  explicit Stream(Device device) : device_(device) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream(Stream&&) = delete;
  Stream& operator=(Stream&&) = delete;
  /// Finishes the work.
  virtual ~Stream() = default;

  [[nodiscard]] Device device() const noexcept { return device_; }
  /// Blocks until all work is done; rethrows the first failure.
  virtual void synchronize() = 0;
  /// Returns what synchronize() would throw now; null: nothing. The stream keeps it.
  [[nodiscard]] virtual std::exception_ptr failure() const = 0;
  /// Blocks until all work is done or dropped. Does not throw, and keeps a failure: for owners of
  /// memory that the work uses.
  virtual void wait_until_idle() noexcept = 0;

 private:
  friend class Event;
  /// Returns the point after all work launched so far; it is also reached after a failure.
  virtual std::shared_ptr<EventPoint> record() = 0;
  /// Makes work launched from now on run after `point`, of any stream or queue.
  virtual void wait_for(std::shared_ptr<EventPoint> point) = 0;

  Device device_;
};

/// A view of a stream; the last parameter of asynchronous functions.
class StreamView {
 public:
  StreamView(Stream& stream) noexcept : stream_(&stream) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] Device device() const noexcept { return stream_->device(); }
  void synchronize() const { stream_->synchronize(); }
  /// Rethrows the failure of the stream so far: for code that waits for an event and must learn at
  /// once that earlier work has failed.
  void check() const {
    if (const std::exception_ptr failed = stream_->failure()) std::rethrow_exception(failed);
  }
  void wait_until_idle() const noexcept { stream_->wait_until_idle(); }
  /// For code that launches on its device.
  [[nodiscard]] Stream& stream() const noexcept { return *stream_; }
  /// Whether both are the same stream.
  friend bool operator==(StreamView a, StreamView b) noexcept { return a.stream_ == b.stream_; }

 private:
  Stream* stream_;
};

/// The streams of a rank's work. Communication overlaps with computing if it has its own stream.
/// The same holds for copies of activations between device and host, and for updates on the host.
struct Streams {
  Streams(StreamView all) noexcept : Streams(all, all) {}  // NOLINT(google-explicit-constructor)
  Streams(Stream& all) noexcept : Streams(all, all) {}     // NOLINT(google-explicit-constructor)
  Streams(StreamView compute_on, StreamView communicate_on) noexcept
      : Streams(compute_on, communicate_on, compute_on, compute_on) {}
  Streams(StreamView compute_on,
          StreamView communicate_on,
          StreamView copy_on,
          StreamView transfer_on) noexcept
      : compute(compute_on),
        communication(communicate_on),
        copies(copy_on),
        transfers(transfer_on) {}
  [[nodiscard]] bool overlap() const noexcept { return !(compute == communication); }
  StreamView compute;
  StreamView communication;
  StreamView copies;     ///< of activations
  StreamView transfers;  ///< of offloaded gradients and updated parameters; the host launches them
};

}  // namespace dstrain
