// The part of MachineProbe that runs programs and loads libraries.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "launcher/doctor/machine_probe.h"
#include "launcher/process/children.h"
#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "runtime/base/deadline.h"
#include "runtime/base/socket.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr double program_seconds = 5;
constexpr std::size_t output_bytes_max = 1U << 16;

/// What comes out of a pipe until it is closed, or time is up.
std::string read_all(int fd, Deadline deadline) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < output_bytes_max && wait_until_ready(fd, POLLIN, deadline)) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// Kills `pid`, and its group, when it has not ended in time; whether it had.
bool reap(pid_t pid, Deadline deadline, int& wait_status) {
  for (;;) {
    const pid_t reaped = ::waitpid(pid, &wait_status, WNOHANG);
    if (reaped == pid) return true;
    if (reaped < 0 && errno != EINTR) return false;
    if (deadline.passed()) break;
    wait_for_any_end({&pid, 1}, deadline.remaining_ms());
  }
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return false;
}

/// In a process that ends with it: "+" and the library's file, or "-" and why it is not loaded.
std::string load_here(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::string("-") + ::dlerror();
  link_map* map = nullptr;
  std::array<char, PATH_MAX> path{};
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "+" + library;
  return std::string("+") +
         (::realpath(map->l_name, path.data()) != nullptr ? path.data() : map->l_name);
}

}  // namespace

ProgramRun MachineProbe::run(const std::vector<std::string>& words) const {
  const UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  PipeEnds pipe = make_pipe();
  ProcessSpec spec;
  spec.program =
      words.front().find('/') == std::string::npos ? find_on_path(words.front()) : words.front();
  spec.argv = words;
  spec.stdin_fd = null_fd.get();
  spec.stdout_fd = pipe.write.get();
  spec.stderr_fd = pipe.write.get();
  spec.die_with_parent = true;
  ::sigemptyset(&spec.signal_mask);
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) return {false, -1, pid.error()};
  pipe.write.reset();
  const Deadline deadline = Deadline::after(program_seconds);
  ProgramRun run;
  run.output = read_all(pipe.read.get(), deadline);
  pipe.read.reset();
  int wait_status = 0;
  run.ended = reap(pid.value(), deadline, wait_status);
  run.status = run.ended ? shell_status(wait_status) : -1;
  return run;
}

Result<std::string> MachineProbe::load(const std::string& library) const {
  PipeEnds pipe = make_pipe();
  const pid_t pid = ::fork();
  if (pid < 0) return Failure{"cannot fork"};
  if (pid == 0) {
    const std::string said = load_here(library);
    const ssize_t put = ::write(pipe.write.get(), said.data(), said.size());
    ::_exit(put < 0 ? 1 : 0);
  }
  pipe.write.reset();
  const Deadline deadline = Deadline::after(program_seconds);
  const std::string said = read_all(pipe.read.get(), deadline);
  int wait_status = 0;
  const bool ended = reap(pid, deadline, wait_status);
  if (said.starts_with('+')) return said.substr(1);
  if (said.starts_with('-')) return Failure{said.substr(1)};
  return Failure{ended ? "the process that loads it " + describe_end(wait_status)
                       : std::string("loading it does not end")};
}

}  // namespace dstrain::launcher::doctor
