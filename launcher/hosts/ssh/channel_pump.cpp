#include "launcher/hosts/ssh/channel_pump.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <sys/socket.h>

#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t queued_bytes_max = 256U << 10;
constexpr std::size_t error_bytes_max = 4096;
constexpr int signal_base = 128;  // a shell's status for a command that a signal ended

// NOLINTNEXTLINE(readability-function-size): the parameters that libssh passes
void note_signal(ssh_session /*session*/,
                 ssh_channel /*channel*/,
                 const char* signal,
                 int /*core*/,
                 const char* /*message*/,
                 const char* /*language*/,
                 void* text) {
  *static_cast<std::string*>(text) = signal != nullptr ? signal : "?";
}

}  // namespace

std::size_t writable_bytes(ssh_session session, ssh_channel channel) {
  if ((ssh_get_poll_flags(session) & SSH_WRITE_PENDING) != 0) return 0;
  return std::min<std::size_t>(ssh_channel_window_size(channel), channel_chunk_bytes);
}

int write_some(ssh_session session, ssh_channel channel, std::string_view bytes) {
  const std::size_t count = std::min(bytes.size(), writable_bytes(session, channel));
  if (count == 0) return 0;
  const int put = ssh_channel_write(channel, bytes.data(), static_cast<std::uint32_t>(count));
  return put == SSH_AGAIN ? 0 : put;
}

int exit_status(ssh_channel channel) {
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 11, 0)
  std::uint32_t status = 0;
  const int outcome = ssh_channel_get_exit_state(channel, &status, nullptr, nullptr);
  return outcome == SSH_OK ? static_cast<int>(status) : -1;
#else
  return ssh_channel_get_exit_status(channel);
#endif
}

ChannelPump::ChannelPump(ssh_session session, ssh_channel channel, int local_fd)
    : session_(session), channel_(channel), local_fd_(local_fd) {
  make_non_blocking(local_fd);
  make_non_blocking(ssh_get_fd(session));
  ssh_callbacks_init(&callbacks_);
  callbacks_.userdata = &signal_;
  callbacks_.channel_exit_signal_function = note_signal;
  ssh_set_channel_callbacks(channel, &callbacks_);
}

ChannelPump::~ChannelPump() {
  ssh_remove_channel_callbacks(channel_, &callbacks_);
}

bool ChannelPump::remote_may_send() const {
  return to_local_.size() < queued_bytes_max;
}

/// Every call also processes what has arrived on the connection.
void ChannelPump::read_remote() {
  std::array<char, channel_chunk_bytes> buffer;
  while (remote_may_send() && !remote_ended_ && failure_.empty()) {
    const int got = ssh_channel_read_nonblocking(channel_, buffer.data(), buffer.size(), 0);
    if (got > 0) {
      to_local_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == SSH_ERROR) {
      failure_ = ssh_get_error(session_);
    } else {
      remote_ended_ = got == SSH_EOF || ssh_channel_is_closed(channel_) != 0;
      break;
    }
  }
}

void ChannelPump::read_errors() {
  std::array<char, channel_chunk_bytes> buffer;
  for (;;) {
    const int got = ssh_channel_read_nonblocking(channel_, buffer.data(), buffer.size(), 1);
    if (got <= 0) return;
    errors_.append(buffer.data(), static_cast<std::size_t>(got));
    if (errors_.size() > error_bytes_max) errors_.erase(0, errors_.size() - error_bytes_max);
  }
}

bool ChannelPump::can_write_remote() const {
  return !to_remote_.empty() && failure_.empty() && writable_bytes(session_, channel_) > 0;
}

void ChannelPump::write_remote() {
  while (can_write_remote()) {
    const int put = write_some(session_, channel_, to_remote_);
    if (put == 0) return;
    if (put < 0) {
      to_remote_.clear();  // its reader is gone; the command's end says why
      return;
    }
    to_remote_.erase(0, static_cast<std::size_t>(put));
  }
  if (local_ended_ && to_remote_.empty() && !end_sent_) {
    end_sent_ = true;
    ssh_channel_send_eof(channel_);
  }
}

void ChannelPump::read_local() {
  std::array<char, channel_chunk_bytes> buffer;
  while (!local_ended_ && to_remote_.size() < queued_bytes_max) {
    const ssize_t got = recv(local_fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) {
      to_remote_.append(buffer.data(), static_cast<std::size_t>(got));
    } else {
      local_ended_ = true;
    }
  }
}

void ChannelPump::write_local() {
  while (!to_local_.empty()) {
    const ssize_t put = send(local_fd_, to_local_.data(), to_local_.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      local_gone_ = errno != EAGAIN;
      return;
    }
    to_local_.erase(0, static_cast<std::size_t>(put));
  }
}

void ChannelPump::take_end() {
  if (!remote_ended_ || command_ended_) return;
  exit_status_ = exit_status(channel_);
  const bool closed = ssh_channel_is_closed(channel_) != 0 || ssh_get_fd(session_) < 0;
  command_ended_ = exit_status_ >= 0 || !signal_.empty() || closed;
}

bool ChannelPump::finished() const {
  if (stopped_ || local_gone_) return true;
  return to_local_.empty() && (command_ended_ || !failure_.empty());
}

void ChannelPump::wait(int stop_fd) {
  // With a full queue, does not poll the connection: a host that has hung up would wake us for
  // nothing.
  const int remote = remote_may_send() ? ssh_get_fd(session_) : -1;
  const bool sends = (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0;
  const bool wants = !local_ended_ && to_remote_.size() < queued_bytes_max;
  const int local = wants || !to_local_.empty() ? local_fd_ : -1;
  const int local_events = (wants ? POLLIN : 0) | (to_local_.empty() ? 0 : POLLOUT);
  const int remote_events = POLLIN | (sends ? POLLOUT : 0);
  std::array<pollfd, 3> fds{{{stop_fd, POLLIN, 0},
                             {local, static_cast<short>(local_events), 0},
                             {remote, static_cast<short>(remote_events), 0}}};
  if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) fail_errno(errno, "poll");
  stopped_ = fds[0].revents != 0;
}

/// Before waiting, libssh must hold nothing that poll() would not report: so output is read last,
/// and a window that has opened meanwhile is used first.
void ChannelPump::run(int stop_fd) {
  while (!finished()) {
    read_errors();
    read_local();
    write_remote();
    write_local();
    read_remote();
    take_end();
    if (!finished() && !can_write_remote()) wait(stop_fd);
  }
  read_errors();
}

std::string ChannelPump::end_reason() const {
  if (stopped_ || local_gone_) return "the connection was abandoned";
  const std::string error = last_line(errors_);
  std::string reason;
  if (!signal_.empty()) {
    // OpenSSH's servers say "SIG@openssh.com" where the protocol has no name for the signal.
    reason =
        "the remote command was killed by " +
        (signal_.find('@') == signal_.npos ? "SIG" + signal_ : "a signal that SSH has no name for");
  } else if (exit_status_ > signal_base) {
    reason =
        fmt::format("the remote command was killed by {}", signal_name(exit_status_ - signal_base));
  } else if (exit_status_ > 0) {
    reason = fmt::format("the remote command ended with status {}", exit_status_);
  } else if (exit_status_ < 0) {
    reason = fmt::format("the connection was lost{}{}", failure_.empty() ? "" : ": ", failure_);
  }
  if (reason.empty() || error.empty()) return reason;
  return reason + ": " + error;
}

}  // namespace dstrain::launcher
