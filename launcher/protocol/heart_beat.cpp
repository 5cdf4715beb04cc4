#include "launcher/protocol/heart_beat.h"

#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

bool HeartBeat::is_silent(double now) const {
  return silence_seconds_ > 0 && now > heard_ + silence_seconds_;
}

bool HeartBeat::take_turn(double now) {
  if (silence_seconds_ == 0 || now < next_beat_) return false;
  next_beat_ = now + silence_seconds_ / beats_per_silence;
  return true;
}

std::optional<double> HeartBeat::deadline() const {
  return silence_seconds_ > 0 ? std::optional(next_beat_) : std::nullopt;
}

}  // namespace dstrain::launcher
