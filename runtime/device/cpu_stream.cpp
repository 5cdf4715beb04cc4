#include "runtime/device/cpu_stream.h"

#include "runtime/device/host_point.h"

namespace dstrain {

std::shared_ptr<EventPoint> CpuStream::record() {
  return HostPoint::record(queue_);
}

void CpuStream::wait_for(std::shared_ptr<EventPoint> point) {
  queue_.run_always([point = std::move(point)] { point->wait(); });
}

}  // namespace dstrain
