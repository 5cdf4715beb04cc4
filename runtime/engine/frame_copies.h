#pragma once
#include <optional>

#include "runtime/device/event.h"
#include "runtime/engine/frame.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Copies the activations of a frame between device and host, in the order of its calls. The copies
/// run on their own stream, which events order with the computing one. Their memory must outlive
/// it: the destructor waits for copies under way.
class FrameCopies {
 public:
  /// A null `timeline` records nothing.
  FrameCopies(Streams streams, profile::Timeline* timeline)
      : compute_(streams.compute), copies_(streams.copies), timeline_(timeline) {}
  FrameCopies(const FrameCopies&) = delete;
  FrameCopies& operator=(const FrameCopies&) = delete;
  FrameCopies(FrameCopies&&) = delete;
  FrameCopies& operator=(FrameCopies&&) = delete;
  ~FrameCopies() { copies_.wait_until_idle(); }

  /// Begins `call` on the computing stream: it waits for the fetches of the call before it, and for
  /// the stores of the call before that. Begins the call's own fetches.
  void begin(const FrameCall& call);
  /// Begins the stores of `call`, which was launched.
  void end(const FrameCall& call);

 private:
  void launch(std::span<const FrameCopy> copies);

  StreamView compute_;
  StreamView copies_;
  profile::Timeline* timeline_;
  std::optional<Event> point_;  ///< after everything launched before a call, except its own stores
};

}  // namespace dstrain::engine
