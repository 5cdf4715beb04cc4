#include "launcher/hosts/ssh/remote_exchange.h"

#include <array>

#include "launcher/hosts/ssh/channel_io.h"
#include "launcher/process/last_line.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

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
  std::array<char, channel_chunk_bytes> buffer;
  for (;;) {
    const int got = ssh_channel_read_nonblocking(channel, buffer.data(), buffer.size(), is_stderr);
    if (got <= 0) return got == 0;
    into.append(buffer.data(), static_cast<std::size_t>(got));
    if (into.size() > answer_bytes_max) {
      fail(ErrorCode::remote, "the host's shell prints without end");
    }
  }
}

}  // namespace

std::string exchange(const SshConnection& connection,
                     const std::string& command,
                     std::string_view input,
                     const ConnectTimeout& timeout) {
  ssh_session session = connection.route.session.get();
  const UniqueChannel channel(run_remotely(connection, command, timeout));
  std::string output;
  std::string errors;
  bool end_sent = false;
  ConnectTimeout step = timeout;
  for (;;) {
    read_all(channel.get(), errors, true);
    const int put = input.empty() ? 0 : write_some(session, channel.get(), input);
    if (put > 0) input.remove_prefix(static_cast<std::size_t>(put));
    if (input.empty() && !end_sent) end_sent = ssh_channel_send_eof(channel.get()) == SSH_OK;
    if (put > 0) step = ConnectTimeout{timeout.stop_fd, timeout.seconds};
    if (!read_all(channel.get(), output, false)) break;
    // A call above may have opened the window: then there is nothing to wait for.
    const bool may_write = !input.empty() && writable_bytes(session, channel.get()) > 0;
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
