#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace dstrain {

/// Measures how long this process stood still, as in a suspended job or a frozen control group,
/// while it waited in slices.
class Standstills {
 public:
  void begin_slice() { began_ = Clock::now(); }
  /// Call after each slice of at most `seconds`; the first one begins with this object, or with
  /// begin_slice(). Returns by how many seconds it took longer; a few count as none.
  double end_slice(double seconds) {
    constexpr double least = 5;  // a busy machine is late too
    const Clock::time_point now = Clock::now();
    const double beyond = std::chrono::duration<double>(now - began_).count() - seconds;
    began_ = now;
    return beyond > least ? beyond : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point began_ = Clock::now();
};

/// A moment on the monotonic clock after which a wait gives up.
class Deadline {
 public:
  /// Returns the deadline `seconds` from now, at most ten years.
  static Deadline after(double seconds) {
    const double most = 3.2e8;
    return Deadline(Clock::now() + seconds_of(std::min(seconds, most)));
  }
  /// The earlier of this one and `seconds` from now.
  [[nodiscard]] Deadline at_most(double seconds) const {
    return Deadline(std::min(moment_, after(seconds).moment_));
  }
  /// Call after each slice of at most `slice_seconds` of a wait; the first one begins with the
  /// deadline. A standstill of the process does not count; otherwise all waits would time out when
  /// the process continues.
  void skip_standstill(double slice_seconds) { put_off(slices_.end_slice(slice_seconds)); }
  /// Call if only short work was done since the last slice: a standstill in it does not count
  /// either.
  void skip_standstill() { skip_standstill(0); }
  /// Calls `wait`, which takes at most `seconds`; as above.
  template <class Wait>
  void slice(double seconds, const Wait& wait) {
    slices_.begin_slice();
    wait();
    skip_standstill(seconds);
  }
  /// Sleeps for `seconds`, or until the deadline; as above.
  void rest(double seconds) {
    const double most = std::min(seconds, remaining_seconds());
    slice(most, [most] { std::this_thread::sleep_for(std::chrono::duration<double>(most)); });
  }
  /// Returns the seconds by which all standstills have extended the deadline.
  [[nodiscard]] double standstill_seconds() const { return standstill_seconds_; }
  /// Extends the deadline by the standstill of a wait that had its own deadline.
  void put_off(double seconds) {
    standstill_seconds_ += seconds;
    moment_ += seconds_of(seconds);
    slices_.begin_slice();
  }
  [[nodiscard]] bool passed() const { return Clock::now() >= moment_; }
  /// Returns the seconds left; 0 after the deadline.
  [[nodiscard]] double remaining_seconds() const {
    return std::max(0.0, std::chrono::duration<double>(moment_ - Clock::now()).count());
  }
  /// Returns the timeout for poll(2): milliseconds left, rounded up so that a wait does not spin at
  /// the end.
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
  Standstills slices_;
  double standstill_seconds_ = 0;
};

}  // namespace dstrain
