#include "zero/communication.h"

#include "runtime/profile/recording.h"

namespace dstrain::zero {

using profile::Activity;
using profile::Lane;
using profile::Recording;

void Communication::follow(StreamView compute) const {
  if (!streams_.overlap()) return;
  streams_.communication.check();
  Event::record(compute).wait_on(streams_.communication);
}

void Communication::host_follows() const {
  Event::record(streams_.communication).wait_on(*host_);
}

void Communication::follow_host() const {
  if (streams_.overlap()) Event::record(*host_).wait_on(streams_.communication);
}

Communication::Point Communication::now() const {
  if (!streams_.overlap()) return std::nullopt;
  return Event::record(streams_.communication);
}

Communication::Point Communication::host_now() const {
  if (!streams_.overlap()) return std::nullopt;
  return Event::record(*host_);
}

void Communication::wait(Point& point, StreamView compute) const {
  if (!point) return;
  {
    const Recording recording(timeline_, compute, Lane::compute, Activity::wait);
    point->wait_on(compute);
  }
  point.reset();
  streams_.communication.check();
}

void Communication::join(StreamView compute) const {
  follow_host();
  Point point = now();
  wait(point, compute);
}

void Communication::synchronize() const {
  if (!streams_.overlap()) {
    streams_.compute.synchronize();
    return;
  }
  const Recording recording(timeline_, Lane::compute, Activity::wait);
  streams_.communication.synchronize();
  host_->synchronize();
}

}  // namespace dstrain::zero
