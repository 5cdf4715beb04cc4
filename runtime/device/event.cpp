#include "runtime/device/event.h"

#include "runtime/device/host_point.h"

namespace dstrain {

Event Event::record(StreamView stream) {
  return Event(stream.stream().record());
}

Event Event::record(HostQueue& queue) {
  return Event(HostPoint::record(queue));
}

void Event::wait_on(StreamView stream) const {
  stream.stream().wait_for(point_);
}

void Event::wait_on(HostQueue& queue) const {
  queue.run_always([point = point_] { point->wait(); });
}

}  // namespace dstrain
