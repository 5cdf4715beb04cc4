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

void HostPoint::then(Open open) {
  std::unique_lock lock(mutex_);
  if (!reached_) {
    waiting_.push_back(std::move(open));
    return;
  }
  lock.unlock();
  open(failure_);
}

void HostPoint::reach(std::exception_ptr failure) {
  std::vector<Open> waiting;
  {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    failure_ = std::move(failure);
    waiting.swap(waiting_);
    changed_.notify_all();
  }
  for (const Open& open : waiting) open(failure_);
}

}  // namespace dstrain
