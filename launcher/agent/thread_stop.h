#pragma once
#include <string>

#include <sys/types.h>

namespace dstrain::launcher {

/// Stops a thread by ptrace(2) during its own lifetime, without a signal: a thread that a signal
/// has stopped stays stopped afterwards, and if this process is killed, nothing stays pending.
class ThreadStop {
 public:
  explicit ThreadStop(pid_t thread);
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;
  ThreadStop(ThreadStop&&) = delete;
  ThreadStop& operator=(ThreadStop&&) = delete;
  ~ThreadStop();

  /// Empty: it is stopped.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  [[nodiscard]] bool wait() const;

  pid_t thread_;
  bool seized_ = false;
  std::string failure_;
};

}  // namespace dstrain::launcher
