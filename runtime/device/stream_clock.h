#pragma once
#include <cstddef>
#include <optional>

#include "runtime/device/stream.h"

namespace dstrain {

/// Measures when a device reaches points of its streams, in seconds of a host clock. It uses the
/// device's own clock, which compare() relates to the host's. Streams must outlive their stamps.
/// Thread-safe.
class StreamClock {
 public:
  StreamClock() = default;
  StreamClock(const StreamClock&) = delete;
  StreamClock& operator=(const StreamClock&) = delete;
  StreamClock(StreamClock&&) = delete;
  StreamClock& operator=(StreamClock&&) = delete;
  virtual ~StreamClock() = default;

  /// Compares the two clocks again, for points stamped from now on, because they drift. Waits for
  /// the device to answer, not for the work of its streams.
  virtual void compare() = 0;
  /// Returns the maximum error of a time: the time that the device took to answer, and the drift of
  /// the clocks between comparisons.
  [[nodiscard]] virtual double error_seconds() const = 0;

  /// A stamped point. Its number is reused after seconds() has returned its time.
  using Stamp = std::size_t;
  /// Returns the point after all work given to `stream` so far. Does not wait. seconds() throws
  /// failures.
  virtual Stamp stamp(StreamView stream) noexcept = 0;
  /// Returns when the stream reached it; nothing: not yet. Call until it returns a time.
  virtual std::optional<double> seconds(Stamp stamp) = 0;
  /// Blocks until the stream reaches it.
  virtual void wait_for(Stamp stamp) = 0;
};

}  // namespace dstrain
