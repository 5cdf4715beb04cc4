#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/host_queue.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// A point in the work of a host queue. A stream of a device waits for it at a gate of the device,
/// which then() opens.
class HostPoint final : public EventPoint {
 public:
  /// Returns the point after all work given to `queue` so far.
  static std::shared_ptr<EventPoint> record(HostQueue& queue);
  void wait() override;
  /// Calls `open` with the failure before the point, or null: when the point is reached, on the
  /// thread that reaches it; at once if it is already reached. `open` must not throw or block.
  using Open = std::function<void(std::exception_ptr failure)>;
  void then(Open open);

 private:
  void reach(std::exception_ptr failure);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
  std::exception_ptr failure_;
  std::vector<Open> waiting_;
};

}  // namespace dstrain
