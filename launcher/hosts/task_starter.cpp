#include "launcher/hosts/task_starter.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "launcher/process/pipes.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t kept_bytes_max = 8192;   // of the beginning, and of the end
constexpr std::ptrdiff_t shown_lines_max = 6;  // likewise

bool says_something(std::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// srun prints this at SIGTERM, before it kills its tasks. Nothing else distinguishes them from
/// tasks that a lack of memory kills: srun itself ends as they do.
bool tells_of_kill(std::string_view line) {
  return line.find("srun: forcing job termination") != line.npos;
}

std::vector<std::string> telling_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line = last_line(text.substr(0, end));
    if (says_something(line)) lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

TaskStarter::TaskStarter(const TaskCommand& command,
                         const std::vector<EnvVar>& env,
                         const sigset_t& signal_mask)
    : name_(std::filesystem::path(command.argv.front()).filename().string()) {
  const UniqueFd hosts = make_text_file(command.host_list);
  PipeEnds output = make_pipe();
  make_non_blocking(output.read.get());
  ProcessSpec spec;
  spec.program = command.argv.front();
  spec.argv = command.argv;
  spec.env = env;
  spec.stdin_fd = hosts.get();
  spec.stdout_fd = spec.stderr_fd = output.write.get();
  spec.new_session = true;
  spec.signal_mask = signal_mask;
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "cannot start {}: {}", name_, pid.error());
  pid_ = pid.value();
  end_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!end_) fail_errno(errno, "pidfd_open");
  output_ = std::move(output.read);
}

void TaskStarter::add_polls(std::vector<pollfd>& fds) const {
  fds.push_back({ended() ? -1 : end_.get(), POLLIN, 0});
  fds.push_back({output_.get(), POLLIN, 0});
}

void TaskStarter::advance(const pollfd* fds) {
  if (fds[1].revents != 0) read_output();
  if (fds[0].revents == 0) return;
  int wait_status = 0;
  if (waitpid(pid_, &wait_status, WNOHANG) != pid_) return;
  read_output();
  wait_status_ = wait_status;
}

void TaskStarter::read_output() {
  read_available(output_, [this](std::string_view part) {
    const std::size_t begin = std::min(part.size(), kept_bytes_max - first_output_.size());
    first_output_ += part.substr(0, begin);
    last_output_ += part.substr(begin);
    if (last_output_.size() <= kept_bytes_max) return;
    last_output_.erase(0, last_output_.size() - kept_bytes_max);
  });
}

std::string TaskStarter::output() const {
  std::vector<std::string> lines = telling_lines(first_output_ + last_output_);
  if (std::ssize(lines) > 2 * shown_lines_max) {
    const auto first_left_out = lines.begin() + shown_lines_max;
    *first_left_out = "...";
    lines.erase(first_left_out + 1, lines.end() - shown_lines_max);
  }
  return fmt::format("{}", fmt::join(lines, "\n  "));
}

std::string TaskStarter::end_reason() const {
  const std::string said = output();
  return fmt::format("{} (pid {}) {}{}{}", name_, pid_, describe_end(*wait_status_),
                     said.empty()                   ? ""
                     : said.find('\n') == said.npos ? ": "
                                                    : ":\n  ",
                     said);
}

std::string TaskStarter::kill_reason() const {
  if (wait_status_ && WIFSIGNALED(*wait_status_)) {
    return fmt::format("{} (pid {}) {}", name_, pid_, describe_end(*wait_status_));
  }
  for (const std::string& line : telling_lines(first_output_ + last_output_)) {
    if (tells_of_kill(line))
      return fmt::format("{} (pid {}) kills its tasks ({})", name_, pid_, line);
  }
  return "";
}

void TaskStarter::ask_to_end() const {
  if (!ended()) kill(pid_, SIGTERM);
}

}  // namespace dstrain::launcher
