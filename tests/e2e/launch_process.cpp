#include "tests/e2e/launch_process.h"

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "launcher/plan/job_env.h"
#include "launcher/process/children.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"

namespace dstrain::test {
namespace {

constexpr const char* marker_name = "DSTRAIN_TEST_MARKER";

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) fail_errno(errno, "pipe");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// Appends what has arrived; closes the stream at its end.
void read_some(UniqueFd& fd, std::string& text) {
  std::array<char, 1U << 16> buffer;
  const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0) fd.reset();
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

bool eventually(const std::function<bool()>& condition, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (Clock::now() > end) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& directory : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = directory.path().filename().string();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc{} || end != name.data() + name.size()) continue;
    if (launcher::has_environment_entry(pid, entry.c_str())) found.push_back(pid);
  }
  return found;
}

Launch::Launch(std::vector<std::string> arguments, const Options& options)
    : marker_(launcher::random_hex(8)) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  launcher::ProcessSpec spec;
  spec.argv = options.wrapper;
  spec.argv.emplace_back(DSTRAIN_PROGRAM);
  spec.program = launcher::program_path(spec.argv.front());
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.env = options.env;
  spec.env.push_back({marker_name, marker_});
  spec.working_directory = options.directory;
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  sigemptyset(&spec.signal_mask);
  pid_ = launcher::start_process(spec).value();
  out_fd_ = std::move(out.read);
  err_fd_ = std::move(err.read);
}

Launch::~Launch() {
  eventually(
      [this] {
        const auto left = processes();
        for (const pid_t pid : left) kill(pid, SIGKILL);
        return left.empty();
      },
      10);
  if (status_ < 0) waitpid(pid_, nullptr, 0);
}

pid_t Launch::agent_pid() const {
  std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid_, pid_));
  pid_t agent = 0;
  file >> agent;
  return agent;
}

std::vector<pid_t> Launch::processes() const {
  return processes_with(std::string(marker_name) + "=" + marker_);
}

void Launch::signal(int number) const {
  kill(pid_, number);
}

bool Launch::pump() {
  std::array<pollfd, 2> fds{{{out_fd_.get(), POLLIN, 0}, {err_fd_.get(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), 5);
  if (fds[0].revents != 0) read_some(out_fd_, out_);
  if (fds[1].revents != 0) read_some(err_fd_, err_);
  return out_fd_ || err_fd_;
}

bool Launch::reap() {
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, WNOHANG) != pid_) return false;
  status_ = launcher::shell_status(wait_status);
  return true;
}

bool Launch::wait_for_output(const std::string& text, int times) {
  return eventually([&] {
    pump();
    return count(out_, text) >= times;
  });
}

int Launch::wait(double seconds) {
  const bool ended =
      eventually([this] { return !pump(); }, seconds) && eventually([this] { return reap(); });
  return ended ? status_ : -1;
}

int Launch::wait_without_reading() {
  return eventually([this] { return reap(); }) ? status_ : -1;
}

bool Launch::nothing_left() const {
  return eventually([this] { return processes().empty(); }, 30);
}

std::vector<std::string> shell_command(int ranks, const std::string& script) {
  return {"-q", "--num_gpus", std::to_string(ranks), "sh", "-c", script};
}

Outcome run_command(std::vector<std::string> arguments, const Launch::Options& options) {
  Launch launch(std::move(arguments), options);
  const int status = launch.wait();
  return {status, launch.out(), launch.err()};
}

}  // namespace dstrain::test
