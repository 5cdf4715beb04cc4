#pragma once
#include <cstddef>
#include <optional>

#include "runtime/device/stream.h"

namespace dstrain {

/// Tells when a device got to points of its streams, in seconds of a clock of the host. A device's
/// own clock says that, which compare() has held against the host's. Its streams must outlive what
/// is stamped on them. Thread-safe.
class StreamClock {
 public:
  StreamClock() = default;
  StreamClock(const StreamClock&) = delete;
  StreamClock& operator=(const StreamClock&) = delete;
  StreamClock(StreamClock&&) = delete;
  StreamClock& operator=(StreamClock&&) = delete;
  virtual ~StreamClock() = default;

  /// Compares the two clocks anew, for the points that are stamped from now on: two clocks drift
  /// apart. Waits for the device to answer, not for what its streams have been given.
  virtual void compare() = 0;
  /// By how much a time may be wrong, at most so far: how long the device took to answer, and what
  /// the clocks drifted from one comparison to the next.
  [[nodiscard]] virtual double error_seconds() const = 0;

  /// A point that was stamped; its number is free for another one once seconds() has told it.
  using Stamp = std::size_t;
  /// The point after all that `stream` was given so far. Does not wait. What fails comes out of
  /// seconds().
  virtual Stamp stamp(StreamView stream) noexcept = 0;
  /// When the stream got there, to be asked until it is told; nothing: it has not yet.
  virtual std::optional<double> seconds(Stamp stamp) = 0;
  /// Blocks until the stream is there.
  virtual void wait_for(Stamp stamp) = 0;
};

}  // namespace dstrain
