#pragma once
#include <string>
#include <string_view>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// A standard stream of the launcher, written without ever blocking on a pipe, terminal or socket.
/// Queues bytes that cannot be written yet; callers limit the queue by pending_bytes(). Once the
/// stream has no reader (EPIPE) or fails (disk full), drops the rest; the job continues.
class OutputSink {
 public:
  /// Borrows `fd`. Reopens pipes and terminals, so that O_NONBLOCK does not leak into the shell
  /// that shares them.
  explicit OutputSink(int fd);

  void write(std::string_view bytes);
  /// Writes as much as possible without waiting.
  void flush();
  /// To be polled for POLLOUT while pending_bytes() is not 0.
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::size_t pending_bytes() const { return queue_.size() - position_; }
  /// errno of the write after which nothing more was written; 0: there was none.
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] bool at_line_start() const { return at_line_start_; }

 private:
  ssize_t write_some(std::string_view bytes) const;
  void drop();

  enum class Kind { plain, non_blocking, socket };
  Kind kind_ = Kind::plain;
  int fd_ = -1;
  UniqueFd own_;
  std::string queue_;
  std::size_t position_ = 0;
  int error_ = 0;
  bool at_line_start_ = true;
};

}  // namespace dstrain::launcher
