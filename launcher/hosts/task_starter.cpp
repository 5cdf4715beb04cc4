#include "launcher/hosts/task_starter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <deque>
#include <filesystem>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "launcher/process/pipes.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"
#include "runtime/base/fd_io.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t kept_bytes_max = 8192;
constexpr std::size_t shown_lines_max = 12;

/// A file without a name that holds `text`, to be read from its beginning by whoever opens it.
UniqueFd file_of(const std::string& text) {
  UniqueFd file(memfd_create("dstrain-hosts", MFD_CLOEXEC));
  if (!file) fail_errno(errno, "memfd_create");
  write_fully(file.get(), std::as_bytes(std::span(text)), "the list of hosts");
  if (lseek(file.get(), 0, SEEK_SET) != 0) fail_errno(errno, "lseek");
  return file;
}

bool says_something(std::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

TaskStarter::TaskStarter(const TaskCommand& command,
                         const std::vector<EnvVar>& env,
                         const sigset_t& signal_mask)
    : name_(std::filesystem::path(command.argv.front()).filename().string()) {
  const UniqueFd hosts = file_of(command.host_list);
  PipeEnds notes = make_pipe();
  make_non_blocking(notes.read.get());
  ProcessSpec spec;
  spec.program = command.argv.front();
  spec.argv = command.argv;
  spec.env = command.env;
  spec.env.insert(spec.env.end(), env.begin(), env.end());
  spec.stdin_fd = hosts.get();
  spec.stdout_fd = spec.stderr_fd = notes.write.get();
  spec.new_session = true;
  spec.signal_mask = signal_mask;
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "cannot start {}: {}", name_, pid.error());
  pid_ = pid.value();
  end_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!end_) fail_errno(errno, "pidfd_open");
  notes_ = std::move(notes.read);
}

void TaskStarter::add_polls(std::vector<pollfd>& fds) const {
  fds.push_back({ended() ? -1 : end_.get(), POLLIN, 0});
  fds.push_back({notes_.get(), POLLIN, 0});
}

void TaskStarter::advance(const pollfd* fds) {
  if (fds[1].revents != 0) read_notes();
  if (fds[0].revents == 0) return;
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, WNOHANG) != pid_) return;
  read_notes();
  wait_status_ = wait_status;
}

void TaskStarter::read_notes() {
  std::array<char, 4096> buffer;
  while (notes_) {
    const ssize_t got = read(notes_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return notes_.reset();
    last_notes_.append(buffer.data(), static_cast<std::size_t>(got));
    if (last_notes_.size() > kept_bytes_max) {
      last_notes_.erase(0, last_notes_.size() - kept_bytes_max);
    }
  }
}

std::string TaskStarter::words() const {
  std::deque<std::string> lines;
  for (std::string_view rest = last_notes_; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line = last_line(rest.substr(0, end));
    if (says_something(line)) lines.push_back(line);
    if (lines.size() > shown_lines_max) lines.pop_front();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return fmt::format("{}", fmt::join(lines, "\n  "));
}

std::string TaskStarter::end_reason() const {
  const std::string said = words();
  return fmt::format("{} (pid {}) {}{}{}", name_, pid_, describe_end(*wait_status_),
                     said.empty()                   ? ""
                     : said.find('\n') == said.npos ? ": "
                                                    : ":\n  ",
                     said);
}

void TaskStarter::ask_to_end() const {
  if (!ended()) kill(pid_, SIGTERM);
}

}  // namespace dstrain::launcher
