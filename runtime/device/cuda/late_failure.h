#pragma once
#include <exception>
#include <mutex>
#include <utility>

namespace dstrain::cuda {

/// A failure, after the launch, of work on streams of a GPU that CUDA does not notice: a collective
/// whose peer is gone. The code that detects it sets it here before it ends the work. Then every
/// stream that has the work, or that has waited for it, reports it. Thread-safe.
class LateFailure {
 public:
  /// Keeps only the first failure.
  void set(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  /// Returns null if there is no failure yet.
  [[nodiscard]] std::exception_ptr get() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr failure_;  ///< guarded
};

}  // namespace dstrain::cuda
