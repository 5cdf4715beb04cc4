#pragma once
#include <atomic>
#include <csignal>
#include <thread>

#include "runtime/base/unique_handle.h"

namespace dstrain::session {

/// SIGTERM, SIGINT, SIGUSR1 and, unless it is ignored (nohup), SIGHUP, by which a rank is asked to
/// stop. A thread of their own reads them; nothing handles them, since a handler's frame lies below
/// the stack pointer of the thread that it interrupts: oneDNN's AVX2 kernels of matrix products
/// keep their workspace there (seen in 2.6), and what lies before it in the heap was overwritten.
///
/// Blocks them in the thread that makes it, for good, and so in all that are started after it: made
/// before any other. Throws Error{io}.
class StopSignals {
 public:
  /// They end the process, as they do by default, until `keep` is called.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  StopSignals(StopSignals&&) = delete;
  StopSignals& operator=(StopSignals&&) = delete;
  ~StopSignals();

  /// From now on they are only remembered.
  void keep() { kept_ = true; }
  /// The last that arrived since then, or 0.
  [[nodiscard]] int arrived() const { return arrived_; }

 private:
  void run();

  UniqueFd signals_;
  UniqueFd end_;  ///< readable: the thread is to end
  std::atomic<bool> kept_{false};
  std::atomic<int> arrived_{0};
  std::thread thread_;
};

}  // namespace dstrain::session
