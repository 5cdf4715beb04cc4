#include "launcher/hosts/ssh/copy_programs.h"

#include <array>
#include <string_view>

#include "launcher/hosts/ssh/channel_pump.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

/// Marks the lines of our scripts among the output of the login shell.
constexpr std::string_view mark =
    "\x1e"
    "dstrain copy: ";

/// $0: the bundle's name, $1: the mark. Prints where the programs are, or where to put them.
constexpr const char* look_script =
    "set -e; cache=\"${XDG_CACHE_HOME:-$HOME/.cache}/dstrain\"; "
    "if [ -x \"$cache/$0/bin/dstrain\" ]; then echo \"$1there $cache/$0\"; exit; fi; "
    "umask 077; mkdir -p \"$cache\"; part=$(mktemp -d \"$cache/$0.part.XXXXXX\"); "
    "mkdir \"$part/bin\"; echo \"$1put $part\"";

/// $0: where they are put, $1: a file, $2: "CHECKSUM BYTES". Removes everything if the file arrives
/// damaged.
constexpr const char* receive_script =
    "cat >\"$0/bin/$1\" && chmod 755 \"$0/bin/$1\" && "
    "[ \"$(cksum <\"$0/bin/$1\")\" = \"$2\" ] && exit; "
    "rm -rf \"$0\"; echo \"$1 did not arrive whole; is the disk full?\" >&2; exit 1";

/// $0: where they were put, $1: the mark. The first copy that is ready gets the final name.
constexpr const char* finish_script =
    "final=${0%.part.*}; mv -T \"$0\" \"$final\" 2>/dev/null || rm -rf \"$0\"; "
    "[ -x \"$final/bin/dstrain\" ] && echo \"$1there $final\"";

constexpr std::size_t answer_bytes_max = 1U << 20;
constexpr const char* what = "the host to receive our programs";

struct ChannelTraits {
  using Raw = ssh_channel;
  static constexpr Raw null() noexcept { return nullptr; }
  static void release(Raw channel) noexcept { ssh_channel_free(channel); }
};
using UniqueChannel = UniqueHandle<ChannelTraits>;

/// Reads what has arrived on a stream of the channel; false at its end.
bool read_all(ssh_channel channel, std::string& into, bool is_stderr) {
  std::array<char, channel_chunk_bytes> buffer;
  for (;;) {
    const int got = ssh_channel_read_nonblocking(channel, buffer.data(), buffer.size(), is_stderr);
    if (got <= 0) return got == 0;
    into.append(buffer.data(), static_cast<std::size_t>(got));
    if (into.size() > answer_bytes_max) {
      fail(ErrorCode::remote, "the host's shell does not stop printing");
    }
  }
}

/// Runs a command, sends it `input` and its end, and returns what it prints to stdout. Throws
/// Error{remote} when it fails, with the last line of its stderr, and when nothing moves for as
/// long as connecting may take.
std::string exchange(const SshConnection& connection,
                     const std::string& command,
                     std::string_view input,
                     const ConnectTimeout& timeout) {
  ssh_session session = connection.route.session.get();
  const UniqueChannel channel(open_channel(connection, timeout));
  start_command(connection, channel.get(), command, timeout);
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
    // A call above may have opened the window: then do not wait.
    const bool may_write = !input.empty() && writable_bytes(session, channel.get()) > 0;
    if (!may_write) wait_for_session(session, step, what);
  }
  read_all(channel.get(), errors, true);
  int status = -1;
  while ((status = exit_status(channel.get())) < 0) {
    if (ssh_channel_is_closed(channel.get()) != 0 || ssh_get_fd(session) < 0) break;
    wait_for_session(session, step, what);
  }
  if (status == 0) return output;
  const std::string reason = last_line(errors);
  fail(ErrorCode::remote, "cannot copy our programs to the host: {}",
       reason.empty() ? ssh_get_error(session) : reason);
}

/// The line of `answer` that our script printed, without its end.
std::string script_answer(const std::string& answer) {
  const std::size_t at = answer.rfind(mark);
  if (at == answer.npos) fail(ErrorCode::remote, "the host's shell does not run our commands");
  const std::size_t start = at + mark.size();
  return answer.substr(start, answer.find('\n', start) - start);
}

}  // namespace

std::string copy_programs(const SshConnection& connection,
                          const BinaryBundle& bundle,
                          const ConnectTimeout& timeout) {
  const auto ask = [&](const std::string& command, std::string_view input) {
    return exchange(connection, command, input, {timeout.stop_fd, timeout.seconds});
  };
  constexpr std::string_view there = "there ";
  constexpr std::string_view put = "put ";
  std::string answer =
      script_answer(ask(shell_command(look_script, {bundle.name, std::string(mark)}), ""));
  if (answer.starts_with(put)) {
    const std::string place = answer.substr(put.size());
    for (const BundledFile& file : bundle.files) {
      const std::string sum = fmt::format("{} {}", file.checksum, file.bytes.size());
      ask(shell_command(receive_script, {place, file.name, sum}), file.bytes);
    }
    answer = script_answer(ask(shell_command(finish_script, {place, std::string(mark)}), ""));
  }
  if (!answer.starts_with(there)) fail(ErrorCode::remote, "the host answers \"{}\"", answer);
  return answer.substr(there.size()) + "/bin/dstrain";
}

}  // namespace dstrain::launcher
