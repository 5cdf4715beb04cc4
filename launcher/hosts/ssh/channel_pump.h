#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

namespace dstrain::launcher {

/// The most that one call moves.
inline constexpr std::size_t channel_chunk_bytes = 32U << 10;

/// How much may be written to the channel now: nothing while its window is closed, or while libssh
/// holds unsent bytes, because it would queue everything.
std::size_t writable_bytes(ssh_session session, ssh_channel channel);

/// Writes some of `bytes`, which must not be empty, and returns how many the channel took; negative
/// if the remote reader is gone.
int write_some(ssh_session session, ssh_channel channel, std::string_view bytes);

/// Reads what has arrived and returns the status of the channel's command: negative until it is
/// known, and for a command that a signal ended.
int exit_status(ssh_channel channel);

/// Carries bytes between a channel and a socket of this process, both ways, with small buffers, and
/// keeps the end of the remote command's stderr.
class ChannelPump {
 public:
  ChannelPump(ssh_session session, ssh_channel channel, int local_fd);
  ChannelPump(const ChannelPump&) = delete;
  ChannelPump& operator=(const ChannelPump&) = delete;
  ChannelPump(ChannelPump&&) = delete;
  ChannelPump& operator=(ChannelPump&&) = delete;
  ~ChannelPump();

  /// Runs until the command has ended, the connection is lost, the socket's other end is closed, or
  /// `stop_fd` has input.
  void run(int stop_fd);
  /// How the command or the connection ended, in one line; empty for a command that succeeded.
  [[nodiscard]] std::string end_reason() const;

 private:
  void read_remote();
  void read_errors();
  void write_remote();
  void read_local();
  void write_local();
  void take_end();
  void wait(int stop_fd);
  [[nodiscard]] bool remote_may_send() const;
  [[nodiscard]] bool can_write_remote() const;
  [[nodiscard]] bool finished() const;

  ssh_session session_;
  ssh_channel channel_;
  int local_fd_;
  ssh_channel_callbacks_struct callbacks_{};
  std::string to_local_;
  std::string to_remote_;
  std::string errors_;
  std::string signal_;
  std::string failure_;
  int exit_status_ = -1;
  bool remote_ended_ = false;   ///< no more output
  bool command_ended_ = false;  ///< and its status is known, or never will be
  bool local_ended_ = false;    ///< nothing more to send
  bool local_gone_ = false;
  bool end_sent_ = false;
  bool stopped_ = false;
};

}  // namespace dstrain::launcher
