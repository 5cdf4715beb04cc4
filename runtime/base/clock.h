#pragma once
#include <chrono>

namespace dstrain {

/// Where time comes from. Tests hand in their own.
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

}  // namespace dstrain
