#include "launcher/job/output_sink.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <climits>
#include <fmt/format.h>

namespace dstrain::launcher {
namespace {

bool is_writable_now(int fd) {
  pollfd one{fd, POLLOUT, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

OutputSink::OutputSink(int fd) : fd_(fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISSOCK(info.st_mode)) kind_ = Kind::socket;
  if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode)) return;
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  own_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!own_) return;  // a terminal of another user, say: plain writes must do
  fd_ = own_.get();
  kind_ = Kind::non_blocking;
}

ssize_t OutputSink::write_some(std::string_view bytes) const {
  if (kind_ == Kind::socket) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (kind_ == Kind::plain) {
    // A ready pipe takes PIPE_BUF bytes without blocking; a file is always ready.
    if (!is_writable_now(fd_)) {
      errno = EAGAIN;
      return -1;
    }
    bytes = bytes.substr(0, PIPE_BUF);
  }
  return ::write(fd_, bytes.data(), bytes.size());
}

void OutputSink::drop() {
  error_ = errno;
  queue_.clear();
  position_ = 0;
}

void OutputSink::write(std::string_view bytes) {
  if (bytes.empty()) return;
  at_line_start_ = bytes.back() == '\n';
  if (error_ == 0) queue_.append(bytes);
}

void OutputSink::flush() {
  while (pending_bytes() > 0) {
    const ssize_t written = write_some(std::string_view(queue_).substr(position_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (written < 0) return drop();
    position_ += static_cast<std::size_t>(written);
  }
  queue_.erase(0, position_);
  position_ = 0;
}

}  // namespace dstrain::launcher
