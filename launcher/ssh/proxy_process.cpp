#include "launcher/ssh/proxy_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "launcher/process.h"
#include "launcher/ssh/last_line.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr off_t words_bytes_max = 4096;

}  // namespace

ProxyProcess::ProxyProcess(const std::string& command)
    : errors_(memfd_create("proxy", MFD_CLOEXEC)) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail_errno(errno, "make a socket pair");
  }
  connection_ = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  ProcessSpec spec;
  // A ProxyCommand is a line for a shell by its definition, written by the user in the user's file.
  spec.program = std::filesystem::path("/bin") / "sh";
  spec.argv = {"sh", "-c", command.starts_with("exec ") ? command : "exec " + command};
  spec.stdin_fd = theirs.get();
  spec.stdout_fd = theirs.get();
  spec.stderr_fd = errors_.get();
  spec.new_session = true;
  spec.die_with_parent = true;
  sigemptyset(&spec.signal_mask);
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "ProxyCommand \"{}\": {}", command, pid.error());
  pid_ = pid.value();
}

ProxyProcess::~ProxyProcess() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string ProxyProcess::last_words() const {
  struct stat file {};
  if (fstat(errors_.get(), &file) != 0) return "";
  std::array<char, words_bytes_max> buffer{};
  const off_t start = file.st_size > words_bytes_max ? file.st_size - words_bytes_max : 0;
  const ssize_t got = pread(errors_.get(), buffer.data(), buffer.size(), start);
  return got > 0 ? last_line({buffer.data(), static_cast<std::size_t>(got)}) : "";
}

}  // namespace dstrain::launcher
