#include "launcher/hosts/ssh/copy_programs.h"

#include "launcher/hosts/shell_quote.h"
#include "launcher/hosts/ssh/remote_exchange.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

/// Before what our scripts say, whatever the login shell prints.
constexpr std::string_view mark =
    "\x1e"
    "dstrain copy: ";

/// $0: the bundle's name, $1: the mark. Says where the programs are, or where they may be put.
constexpr const char* look_script =
    "set -e; cache=\"${XDG_CACHE_HOME:-$HOME/.cache}/dstrain\"; "
    "if [ -x \"$cache/$0/bin/dstrain\" ]; then echo \"$1there $cache/$0\"; exit; fi; "
    "umask 077; mkdir -p \"$cache\"; part=$(mktemp -d \"$cache/$0.part.XXXXXX\"); "
    "mkdir \"$part/bin\"; echo \"$1put $part\"";

/// $0: where they are put, $1: a file, $2: "CHECKSUM BYTES". Leaves nothing when it comes damaged.
constexpr const char* receive_script =
    "cat >\"$0/bin/$1\" && chmod 755 \"$0/bin/$1\" && "
    "[ \"$(cksum <\"$0/bin/$1\")\" = \"$2\" ] && exit; "
    "rm -rf \"$0\"; echo \"$1 did not arrive whole; is the disk full?\" >&2; exit 1";

/// $0: where they were put, $1: the mark. The first to be ready gives the place its name.
constexpr const char* finish_script =
    "final=${0%.part.*}; mv -T \"$0\" \"$final\" 2>/dev/null || rm -rf \"$0\"; "
    "[ -x \"$final/bin/dstrain\" ] && echo \"$1there $final\"";

/// The line of `answer` that our script printed, without its end.
std::string said(const std::string& answer) {
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
  std::string answer = said(ask(shell_command(look_script, {bundle.name, std::string(mark)}), ""));
  if (answer.starts_with(put)) {
    const std::string place = answer.substr(put.size());
    for (const BundledFile& file : bundle.files) {
      const std::string sum = fmt::format("{} {}", file.checksum, file.bytes.size());
      ask(shell_command(receive_script, {place, file.name, sum}), file.bytes);
    }
    answer = said(ask(shell_command(finish_script, {place, std::string(mark)}), ""));
  }
  if (!answer.starts_with(there)) fail(ErrorCode::remote, "the host answers \"{}\"", answer);
  return answer.substr(there.size()) + "/bin/dstrain";
}

}  // namespace dstrain::launcher
