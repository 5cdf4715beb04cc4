#pragma once
#include <exception>
#include <mutex>
#include <utility>

namespace dstrain::cuda {

/// Why work that lies on streams of a GPU fails after it was launched, where CUDA does not know of
/// it: a collective whose peer is gone. Who finds it says so here before it ends the work, and then
/// every stream tells it that the work lies on or that has waited for it. Thread-safe.
class LateFailure {
 public:
  /// The first is kept.
  void set(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  /// Null: none by now.
  [[nodiscard]] std::exception_ptr get() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr failure_;  ///< guarded
};

}  // namespace dstrain::cuda
