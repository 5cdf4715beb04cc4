#pragma once
#include <exception>
#include <memory>

#include "runtime/device/device.h"

namespace dstrain {

/// What an Event passes on: a point in the work of a stream or a queue.
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

/// Work of a device in order: its ops, copies and collectives, which launch it in the device's own
/// way (cpu_stream_access.h). Nothing else can be launched. The first failure comes out of
/// synchronize(); until then what comes after it is dropped. Owner; hand out StreamView. Launching
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
  /// What synchronize() would throw by now; null: nothing. The stream keeps it.
  [[nodiscard]] virtual std::exception_ptr failure() const = 0;
  /// Blocks until all work is done or dropped. Throws nothing and keeps a failure: for owners of
  /// memory that the work uses.
  virtual void wait_until_idle() noexcept = 0;

 private:
  friend class Event;
  /// The point after all that was launched so far; it is reached after a failure too.
  virtual std::shared_ptr<EventPoint> record() = 0;
  /// What is launched from now on runs after `point`, of whatever stream or queue it is.
  virtual void wait_for(std::shared_ptr<EventPoint> point) = 0;

  Device device_;
};

/// A stream that someone else owns; what asynchronous functions take last.
class StreamView {
 public:
  StreamView(Stream& stream) noexcept : stream_(&stream) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] Device device() const noexcept { return stream_->device(); }
  void synchronize() const { stream_->synchronize(); }
  /// Rethrows what the stream has failed with by now: for who waits for an event and wants to hear
  /// at once that the work before it has failed.
  void check() const {
    if (const std::exception_ptr failed = stream_->failure()) std::rethrow_exception(failed);
  }
  void wait_until_idle() const noexcept { stream_->wait_until_idle(); }
  /// For what launches on its device.
  [[nodiscard]] Stream& stream() const noexcept { return *stream_; }
  /// Whether both are the same stream.
  friend bool operator==(StreamView a, StreamView b) noexcept { return a.stream_ == b.stream_; }

 private:
  Stream* stream_;
};

/// Where the work of a rank runs. Communication that has a stream of its own overlaps with
/// computing; with one stream for both it does not. The same for copies of activations between
/// device and host, and for what the host updates.
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
