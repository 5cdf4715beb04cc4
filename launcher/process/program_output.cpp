#include "launcher/process/program_output.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "runtime/base/error.h"
#include "runtime/base/socket.h"

namespace dstrain::launcher {

std::string output_of(const std::vector<std::string>& argv, double seconds_max) {
  PipeEnds pipe = make_pipe();
  PipeEnds input = make_pipe();
  input.write.reset();
  ProcessSpec spec;
  spec.program = argv.front();
  spec.argv = argv;
  spec.stdin_fd = input.read.get();
  spec.stdout_fd = spec.stderr_fd = pipe.write.get();
  spec.die_with_parent = true;
  sigemptyset(&spec.signal_mask);
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "{}", pid.error());
  pipe.write.reset();
  const Deadline deadline = Deadline::after(seconds_max);
  std::string text;
  std::array<char, 4096> part;
  while (wait_until_ready(pipe.read.get(), POLLIN, deadline)) {
    const ssize_t got = read(pipe.read.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  if (deadline.passed()) kill(pid.value(), SIGKILL);
  while (waitpid(pid.value(), nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

}  // namespace dstrain::launcher
