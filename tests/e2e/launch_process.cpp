#include "tests/e2e/launch_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "launcher/plan/job_env.h"
#include "launcher/process/children.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "tests/support/test_tree.h"

namespace dstrain::test {
namespace {

constexpr const char* marker_name = "DSTRAIN_TEST_MARKER";
constexpr double look_again_seconds = 0.02;

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

std::vector<pid_t> processes_with(const std::string& entry) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& directory : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = directory.path().filename().string();
    const std::optional<pid_t> pid = parse_number<pid_t>(name);
    if (pid && launcher::has_environment_entry(*pid, entry.c_str())) found.push_back(*pid);
  }
  return found;
}

Launch::Launch(std::vector<std::string> arguments, const Options& options)
    : marker_(launcher::random_hex(8)) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  launcher::ProcessSpec spec;
  spec.argv = options.wrapper;
  spec.argv.emplace_back(options.program.empty() ? dstrain_program() : options.program);
  spec.program = launcher::program_path(spec.argv.front());
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.env = options.env;
  spec.env.push_back({marker_name, marker_});
  spec.working_directory = options.directory;
  spec.stdin_fd = options.input;
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  sigemptyset(&spec.signal_mask);
  pid_ = launcher::start_process(spec).value();
  out_fd_ = std::move(out.read);
  err_fd_ = std::move(err.read);
}

Launch::~Launch() {
  for (auto left = processes(); !left.empty(); left = processes()) {
    for (const pid_t pid : left) kill(pid, SIGKILL);
    wait_for_end(left.front(), Deadline::after(hang_seconds));
  }
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

void Launch::signal_all(int number, From from) const {
  std::vector<pid_t> all = processes();
  std::ranges::sort(all);
  if (from == From::last) std::ranges::reverse(all);
  for (const pid_t pid : all) kill(pid, number);
}

bool Launch::pump(Deadline deadline) {
  if (!out_fd_ && !err_fd_) return false;
  std::array<pollfd, 2> fds{{{out_fd_.get(), POLLIN, 0}, {err_fd_.get(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), deadline.remaining_ms());
  if (fds[0].revents != 0) read_some(out_fd_, out_);
  if (fds[1].revents != 0) read_some(err_fd_, err_);
  return out_fd_ || err_fd_;
}

bool Launch::has_ended() const {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid_);
  return waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_;
}

int Launch::reap(Deadline deadline) {
  if (!wait_for_end(pid_, deadline)) return -1;
  int wait_status = 0;
  rusage used{};
  if (wait4(pid_, &wait_status, 0, &used) != pid_) fail_errno(errno, "wait4");
  status_ = launcher::shell_status(wait_status);
  was_killed_ = WIFSIGNALED(wait_status);
  peak_kib_ = used.ru_maxrss;
  return status_;
}

bool Launch::wait_until(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(hang_seconds);
  while (!condition()) {
    if (deadline.passed() || !pump(deadline.at_most(look_again_seconds))) return false;
  }
  return true;
}

bool Launch::wait_for_output(const std::string& text, int times) {
  return wait_until([&] { return count(out_, text) >= times; });
}

bool Launch::wait_for_error(const std::string& text) {
  return wait_until([&] { return count(err_, text) > 0; });
}

int Launch::wait(double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  while (pump(deadline)) {
    if (deadline.passed()) return -1;
  }
  return reap(deadline);
}

int Launch::wait_without_reading() {
  return reap(Deadline::after(hang_seconds));
}

bool Launch::nothing_left(double seconds) const {
  return wait_until_none([this] { return processes(); }, seconds);
}

bool Launch::interrupt_until_gone() const {
  const Deadline deadline = Deadline::after(hang_seconds);
  for (auto left = processes(); !left.empty(); left = processes()) {
    if (deadline.passed()) return false;
    signal(SIGINT);
    wait_for_end(left.front(), Deadline::after(look_again_seconds));
  }
  return true;
}

std::vector<std::string> shell_command(int ranks, const std::string& script) {
  return {"-q", "--num_gpus", std::to_string(ranks), "sh", "-c", script};
}

Outcome run_command(std::vector<std::string> arguments, const Launch::Options& options) {
  Launch launch(std::move(arguments), options);
  const int status = launch.wait();
  return {status, launch.out(), launch.err()};
}

std::filesystem::path copy_program(const std::filesystem::path& folder) {
  const std::filesystem::path program = DSTRAIN_PROGRAM;
  for (const char* name : {"dstrain", "libdstrain_core.so"}) {
    std::filesystem::copy_file(program.parent_path() / name, folder / name);
  }
  return folder / program.filename();
}

}  // namespace dstrain::test
