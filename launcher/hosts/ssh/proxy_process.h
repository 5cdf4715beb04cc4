#pragma once
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Runs a ProxyCommand, or the ssh of a ProxyJump: a process whose stdin and stdout carry a
/// connection. The process ends with this object, or with the thread that made it. It has no
/// terminal, so it cannot ask for anything.
class ProxyProcess {
 public:
  /// `words`: program and arguments. Throws Error{remote}.
  explicit ProxyProcess(const std::vector<std::string>& words);
  ProxyProcess(const ProxyProcess&) = delete;
  ProxyProcess& operator=(const ProxyProcess&) = delete;
  ProxyProcess(ProxyProcess&&) = delete;
  ProxyProcess& operator=(ProxyProcess&&) = delete;
  ~ProxyProcess();

  /// The connection; call it once.
  UniqueFd take_connection() { return std::move(connection_); }
  /// The last line that the process printed to stderr.
  [[nodiscard]] std::string last_error_line() const;

 private:
  UniqueFd connection_;
  UniqueFd errors_;
  pid_t pid_ = 0;
};

}  // namespace dstrain::launcher
