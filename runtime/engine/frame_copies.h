#pragma once
#include <optional>

#include "runtime/device/event.h"
#include "runtime/engine/frame.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Moves the activations of a frame between device and host, in the order of its calls, on a stream
/// of its own that events order with the computing one. What it copies must outlive it: the
/// destructor waits for copies under way.
class FrameCopies {
 public:
  /// `timeline`: null: nothing is recorded.
  FrameCopies(StreamView compute, profile::Timeline* timeline)
      : compute_(compute), timeline_(timeline) {}

  /// `call` comes next on the computing stream: that waits for what the call before fetched, and
  /// for the stores of the one before that. Begins the call's own fetches.
  void begin(const FrameCall& call);
  /// `call` was launched: begins its stores.
  void end(const FrameCall& call);

 private:
  void launch(std::span<const FrameCopy> copies);

  StreamView compute_;
  profile::Timeline* timeline_;
  Stream stream_{Stream::Mode::worker_thread, compute_.device()};
  std::optional<Event> point_;  ///< after all that was launched before a call but its own stores
};

}  // namespace dstrain::engine
