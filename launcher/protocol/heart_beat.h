#pragma once
#include <optional>

namespace dstrain::launcher {

/// The two directions of one connection's beats: ours, which go out in their turn, and the other
/// side's silence. Times are seconds of a steady clock.
class HeartBeat {
 public:
  /// From now on a side that is silent for so long counts as gone; 0: no beats, no silence.
  void agree_on(double silence_seconds) { silence_seconds_ = silence_seconds; }
  [[nodiscard]] double silence_seconds() const { return silence_seconds_; }

  /// Whatever came from the other side.
  void heard(double now) { heard_ = now; }
  [[nodiscard]] bool is_silent(double now) const;

  /// Whether a beat is due, which is to be sent then.
  bool take_turn(double now);
  /// When the next one is; none without beats.
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  double silence_seconds_ = 0;
  double heard_ = 0;
  double next_beat_ = 0;
};

}  // namespace dstrain::launcher
