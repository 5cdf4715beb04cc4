#pragma once
#include <chrono>

#include "runtime/base/deadline.h"

namespace dstrain {

/// The source of time. Tests use their own.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since an arbitrary start; never goes back.
  [[nodiscard]] virtual double now_seconds() const = 0;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] double now_seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

/// Monotonic time without the standstills of this process, which waits in slices and reports them,
/// so that nothing times out because this process was suspended.
class UnsuspendedClock final : public Clock {
 public:
  [[nodiscard]] double now_seconds() const override {
    return steady_.now_seconds() - standstill_seconds_;
  }
  void begin_slice() { slices_.begin_slice(); }
  void skip_standstill(double slice_seconds) {
    standstill_seconds_ += slices_.end_slice(slice_seconds);
  }

 private:
  SteadyClock steady_;
  Standstills slices_;
  double standstill_seconds_ = 0;
};

}  // namespace dstrain
