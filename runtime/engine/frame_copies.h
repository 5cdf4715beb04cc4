#pragma once
#include <optional>

#include "runtime/device/event.h"
#include "runtime/engine/frame.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Moves the activations of a frame between device and host, in the order of its calls, on the
/// stream of copies, which events order with the computing one. What it copies must outlive it: the
/// destructor waits for copies under way.
class FrameCopies {
 public:
  /// `timeline`: null: nothing is recorded.
  FrameCopies(Streams streams, profile::Timeline* timeline)
      : compute_(streams.compute), copies_(streams.copies), timeline_(timeline) {}
  FrameCopies(const FrameCopies&) = delete;
  FrameCopies& operator=(const FrameCopies&) = delete;
  FrameCopies(FrameCopies&&) = delete;
  FrameCopies& operator=(FrameCopies&&) = delete;
  ~FrameCopies() { copies_.wait_until_idle(); }

  /// `call` comes next on the computing stream: that waits for what the call before fetched, and
  /// for the stores of the one before that. Begins the call's own fetches.
  void begin(const FrameCall& call);
  /// `call` was launched: begins its stores.
  void end(const FrameCall& call);

 private:
  void launch(std::span<const FrameCopy> copies);

  StreamView compute_;
  StreamView copies_;
  profile::Timeline* timeline_;
  std::optional<Event> point_;  ///< after all that was launched before a call but its own stores
};

}  // namespace dstrain::engine
