#pragma once
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// A ProxyCommand, or the ssh that a ProxyJump stands for: a process through whose stdin and stdout
/// a connection goes. It ends with this object, or with the thread that made it. It has no
/// terminal, so it cannot ask for anything.
class ProxyProcess {
 public:
  /// Program and arguments. Throws Error{remote}.
  explicit ProxyProcess(const std::vector<std::string>& words);
  ProxyProcess(const ProxyProcess&) = delete;
  ProxyProcess& operator=(const ProxyProcess&) = delete;
  ProxyProcess(ProxyProcess&&) = delete;
  ProxyProcess& operator=(ProxyProcess&&) = delete;
  ~ProxyProcess();

  /// The connection, once.
  UniqueFd take_connection() { return std::move(connection_); }
  /// The last line it printed to stderr.
  [[nodiscard]] std::string last_error_line() const;

 private:
  UniqueFd connection_;
  UniqueFd errors_;
  pid_t pid_ = 0;
};

}  // namespace dstrain::launcher
