#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "runtime/device/host_queue.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// A point in the work of a queue of the host.
class HostPoint final : public EventPoint {
 public:
  /// The point after all that `queue` was given so far.
  static std::shared_ptr<EventPoint> record(HostQueue& queue);
  void wait() override;

 private:
  void reach(std::exception_ptr failure);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::exception_ptr failure_;
};

}  // namespace dstrain
