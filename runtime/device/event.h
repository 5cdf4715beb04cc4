#pragma once
#include <memory>
#include <utility>

#include "runtime/device/host_queue.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// A point in the work of a stream or a host queue that another one can wait for: the four
/// crossings between devices and the host. Copies share the point. It is reached after a failure
/// too, so that nobody waits for ever; the failure then comes out of each wait: of the call where
/// who waits is inline, else it fails who waits as one of its own would.
class Event {
 public:
  /// The point after all that `stream` was given so far.
  static Event record(StreamView stream);
  static Event record(HostQueue& queue);
  /// Work launched on `stream` from now on runs after this point.
  void wait_on(StreamView stream) const;
  void wait_on(HostQueue& queue) const;

 private:
  explicit Event(std::shared_ptr<EventPoint> point) : point_(std::move(point)) {}
  std::shared_ptr<EventPoint> point_;  // shared: both sides may outlive the caller's copy
};

}  // namespace dstrain
