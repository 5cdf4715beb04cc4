#pragma once
#include <memory>
#include <utility>

#include "runtime/device/host_queue.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// A point in the work of a stream or a host queue that another one can wait for: the four
/// crossings between devices and the host. Copies share the point. It is also reached after a
/// failure, so that no wait lasts forever. Each wait then gets the failure: an inline waiter throws
/// it from the call; any other fails as if its own work had failed.
class Event {
 public:
  /// Returns the point after all work given to `stream` so far.
  static Event record(StreamView stream);
  static Event record(HostQueue& queue);
  /// Makes work launched on `stream` from now on run after this point.
  void wait_on(StreamView stream) const;
  void wait_on(HostQueue& queue) const;

 private:
  explicit Event(std::shared_ptr<EventPoint> point) : point_(std::move(point)) {}
  std::shared_ptr<EventPoint> point_;  // shared: both sides may outlive the caller's copy
};

}  // namespace dstrain
