#include "runtime/device/host_point.h"

#include <utility>

namespace dstrain {

std::shared_ptr<EventPoint> HostPoint::record(HostQueue& queue) {
  auto point = std::make_shared<HostPoint>();
  queue.run_always([point, &queue] { point->reach(queue.failure()); });
  return point;
}

void HostPoint::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached_; });
  if (failure_) std::rethrow_exception(failure_);
}

void HostPoint::reach(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  reached_ = true;
  failure_ = std::move(failure);
  changed_.notify_all();
}

}  // namespace dstrain
