#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>

namespace dstrain {

/// A moment on the monotonic clock after which a wait gives up.
class Deadline {
 public:
  /// `seconds` from now; more than ten years count as ten years.
  static Deadline after(double seconds) {
    const double most = 3.2e8;
    return Deadline(Clock::now() + seconds_of(std::min(seconds, most)));
  }
  /// The earlier of this one and `seconds` from now.
  [[nodiscard]] Deadline at_most(double seconds) const {
    return Deadline(std::min(moment_, after(seconds).moment_));
  }
  /// To be called after each slice of a wait in slices of at most so long; the first one begins
  /// with the deadline, or begin_slice(). Of one that took seconds more the process was stopped, as
  /// in a suspended job or a frozen control group: that time does not count, or all would give up
  /// waiting the moment they go on.
  void skip_standstill(double slice_seconds) {
    constexpr double least = 5;  // seconds; a busy machine is late, too
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> beyond = now - slice_began_ - seconds_of(slice_seconds);
    if (beyond.count() > least) put_off(beyond.count());
    slice_began_ = now;
  }
  void begin_slice() { slice_began_ = Clock::now(); }
  /// Seconds by which all that has put it off.
  [[nodiscard]] double standstill_seconds() const { return standstill_seconds_; }
  /// By the standstill of a wait that had a deadline of its own.
  void put_off(double seconds) {
    standstill_seconds_ += seconds;
    moment_ += seconds_of(seconds);
    slice_began_ = Clock::now();
  }
  [[nodiscard]] bool passed() const { return Clock::now() >= moment_; }
  /// Seconds left; 0 once it has passed.
  [[nodiscard]] double remaining_seconds() const {
    return std::max(0.0, std::chrono::duration<double>(moment_ - Clock::now()).count());
  }
  /// What poll(2) takes: milliseconds left, rounded up so that a wait does not spin at the end.
  [[nodiscard]] int remaining_ms() const {
    return static_cast<int>(std::min(std::ceil(remaining_seconds() * 1e3), 1e9));
  }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}
  static Clock::duration seconds_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  Clock::time_point moment_;
  Clock::time_point slice_began_ = Clock::now();
  double standstill_seconds_ = 0;
};

}  // namespace dstrain
