#include "launcher/process/program_output.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/children.h"
#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "runtime/base/error.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t text_bytes_max = 1U << 16;
constexpr double kill_seconds = 2;  // for a killed process to be gone

std::string read_all(int fd, Deadline deadline) {
  std::string text;
  std::array<char, 4096> part{};
  while (text.size() < text_bytes_max && wait_until_ready(fd, POLLIN, deadline)) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// None when it has not ended by then.
std::optional<int> reap(pid_t child, Deadline deadline) {
  for (;;) {
    int wait_status = 0;
    const pid_t reaped = waitpid(child, &wait_status, WNOHANG);
    if (reaped == child) return wait_status;
    if ((reaped < 0 && errno != EINTR) || deadline.passed()) return std::nullopt;
    wait_for_any_end({&child, 1}, deadline.remaining_ms());
  }
}

}  // namespace

ProgramOutput output_of_child(pid_t child, UniqueFd pipe, double seconds_max) {
  const Deadline deadline = Deadline::after(seconds_max);
  ProgramOutput output;
  output.text = read_all(pipe.get(), deadline);
  pipe.reset();
  output.wait_status = reap(child, deadline);
  if (output.wait_status) return output;
  kill(-child, SIGKILL);
  kill(child, SIGKILL);
  reap(child, Deadline::after(kill_seconds));
  return output;
}

Result<ProgramOutput> run_program(const std::vector<std::string>& argv, double seconds_max) {
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) fail_errno(errno, "open /dev/null");
  PipeEnds pipe = make_pipe();
  ProcessSpec spec;
  spec.program = argv.front();
  spec.argv = argv;
  spec.stdin_fd = nothing.get();
  spec.stdout_fd = spec.stderr_fd = pipe.write.get();
  spec.parent_death_signal = SIGKILL;
  sigemptyset(&spec.signal_mask);
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) return Failure{pid.error()};
  pipe.write.reset();
  return output_of_child(pid.value(), std::move(pipe.read), seconds_max);
}

}  // namespace dstrain::launcher
