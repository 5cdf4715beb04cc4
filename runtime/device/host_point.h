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

/// A point in the work of a queue of the host. A stream of a device waits for it by a gate of the
/// device's own, which then() opens.
class HostPoint final : public EventPoint {
 public:
  /// The point after all that `queue` was given so far.
  static std::shared_ptr<EventPoint> record(HostQueue& queue);
  void wait() override;
  /// Calls `open` with the failure that came before the point, or null: once it is reached, where
  /// that happens; at once if it has been. `open` neither throws nor blocks.
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
