#include "launcher/hosts/ssh/proxy_process.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr off_t line_bytes_max = 4096;

}  // namespace

ProxyProcess::ProxyProcess(const std::vector<std::string>& words)
    : errors_(memfd_create("proxy", MFD_CLOEXEC)) {
  SocketPair pair = make_socket_pair(SOCK_STREAM);
  connection_ = std::move(pair.ours);
  ProcessSpec spec;
  spec.program = program_path(words.front());
  spec.argv = words;
  spec.stdin_fd = pair.theirs.get();
  spec.stdout_fd = pair.theirs.get();
  spec.stderr_fd = errors_.get();
  spec.new_session = true;
  spec.parent_death_signal = SIGKILL;
  spec.ignores_stops = true;  // the relay decides when its connection ends
  sigemptyset(&spec.signal_mask);
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "ProxyCommand {}: {}", words.front(), pid.error());
  pid_ = pid.value();
}

ProxyProcess::~ProxyProcess() {
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string ProxyProcess::last_error_line() const {
  struct stat file {};
  if (fstat(errors_.get(), &file) != 0) return "";
  std::array<char, line_bytes_max> buffer{};
  const off_t start = file.st_size > line_bytes_max ? file.st_size - line_bytes_max : 0;
  const ssize_t got = pread(errors_.get(), buffer.data(), buffer.size(), start);
  return got > 0 ? last_line({buffer.data(), static_cast<std::size_t>(got)}) : "";
}

}  // namespace dstrain::launcher
