#include "launcher/ssh/remote_exchange.h"

#include <algorithm>
#include <array>

#include "launcher/last_line.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t chunk_bytes = 32U << 10;
constexpr std::size_t answer_bytes_max = 1U << 20;
constexpr const char* what = "the host to take our programs";

struct ChannelTraits {
  using Raw = ssh_channel;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw channel) noexcept { ssh_channel_free(channel); }
};
using UniqueChannel = UniqueHandle<ChannelTraits>;

/// Reads what is there of a stream of the channel; false at its end.
bool read_all(ssh_channel channel, std::string& into, bool is_stderr) {
  std::array<char, chunk_bytes> buffer;
  for (;;) {
    const int got = ssh_channel_read_nonblocking(channel, buffer.data(), buffer.size(), is_stderr);
    if (got <= 0) return got == 0;
    into.append(buffer.data(), static_cast<std::size_t>(got));
    if (into.size() > answer_bytes_max) {
      fail(ErrorCode::remote, "the host's shell prints without end");
    }
  }
}

std::size_t room(ssh_session session, ssh_channel channel) {
  if ((ssh_get_poll_flags(session) & SSH_WRITE_PENDING) != 0) return 0;
  return std::min<std::size_t>(ssh_channel_window_size(channel), chunk_bytes);
}

/// How much of `input` the channel took.
std::size_t write_some(ssh_session session, ssh_channel channel, std::string_view input) {
  const std::size_t bytes = std::min(input.size(), room(session, channel));
  if (bytes == 0) return 0;
  const int put = ssh_channel_write(channel, input.data(), static_cast<std::uint32_t>(bytes));
  return put > 0 ? static_cast<std::size_t>(put) : 0;
}

}  // namespace

std::string exchange(const SshConnection& connection,
                     const std::string& command,
                     std::string_view input,
                     const Patience& patience) {
  ssh_session session = connection.route.session.get();
  const UniqueChannel channel(run_remotely(connection, command, patience));
  std::string output;
  std::string errors;
  bool end_sent = false;
  Patience step = patience;
  for (;;) {
    read_all(channel.get(), errors, true);
    const std::size_t put = write_some(session, channel.get(), input);
    input.remove_prefix(put);
    if (input.empty() && !end_sent) end_sent = ssh_channel_send_eof(channel.get()) == SSH_OK;
    if (put > 0) step = Patience{patience.stop_fd, patience.seconds};
    if (!read_all(channel.get(), output, false)) break;
    // A call above may have opened the window: then there is nothing to wait for.
    const bool may_write = !input.empty() && room(session, channel.get()) > 0;
    if (!may_write) wait_for_session(session, step, what);
  }
  read_all(channel.get(), errors, true);
  int status = -1;
  while ((status = ssh_channel_get_exit_status(channel.get())) < 0) {
    if (ssh_channel_is_closed(channel.get()) != 0 || ssh_get_fd(session) < 0) break;
    wait_for_session(session, step, what);
  }
  if (status == 0) return output;
  const std::string words = last_line(errors);
  fail(ErrorCode::remote, "the host does not take our programs: {}",
       words.empty() ? ssh_get_error(session) : words);
}

}  // namespace dstrain::launcher
