#pragma once
#include <algorithm>
#include <cstdint>

namespace dstrain::engine {

/// The seconds of a step, averaged over the last ones.
class StepRate {
 public:
  /// Takes the seconds of one more step. Returns the average.
  double add(double seconds) {
    constexpr double memory = 8;
    seconds_ += (seconds - seconds_) / std::min(static_cast<double>(++steps_), memory);
    return seconds_;
  }

 private:
  std::int64_t steps_ = 0;
  double seconds_ = 0;
};

}  // namespace dstrain::engine
