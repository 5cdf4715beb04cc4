#include "launcher/process/children.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/unique_handle.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double kill_seconds_max = 10;

std::string read_proc(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The fields of /proc/PID/stat after the name, which may hold blanks and brackets itself.
std::istringstream stat_fields(pid_t pid) {
  const std::string text = read_proc(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');
  return std::istringstream(name_end == text.npos ? "" : text.substr(name_end + 1));
}

/// Without CONFIG_PROC_CHILDREN: look at every process.
std::vector<pid_t> children_by_scan() {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    const std::optional<pid_t> pid = parse_number<pid_t>(name);
    if (!pid) continue;
    std::istringstream fields = stat_fields(*pid);
    std::string state;
    pid_t parent = 0;
    if (fields >> state >> parent && parent == getpid()) children.push_back(*pid);
  }
  return children;
}

}  // namespace

void become_subreaper() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail_errno(errno, "become a subreaper");
}

std::vector<pid_t> list_children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
  if (!file) return children_by_scan();
  std::vector<pid_t> children;
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

bool has_environment_entry(pid_t pid, const char* entry) {
  const std::string text = '\0' + read_proc(fmt::format("/proc/{}/environ", pid));
  return text.find(std::string(1, '\0') + entry + '\0') != text.npos;
}

void wait_for_any_end(std::span<const pid_t> children, int milliseconds_max) {
  std::vector<UniqueFd> handles;
  std::vector<pollfd> fds;
  for (const pid_t child : children) {
    UniqueFd& handle = handles.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    if (handle) fds.push_back({handle.get(), POLLIN, 0});
  }
  poll(fds.data(), fds.size(), milliseconds_max);
}

JobChildren::JobChildren(const std::string& job_id)
    : marker_(std::string(env::job) + "=" + job_id) {
  for (const pid_t pid : list_children()) others_.insert(pid);
}

void JobChildren::reap(const OnEnd& on_end) {
  for (;;) {
    int wait_status = 0;
    const pid_t pid = waitpid(-1, &wait_status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    excluded_.erase(pid);
    if (others_.erase(pid) == 0) on_end(pid, wait_status);
  }
}

/// Returns those that it was sent to.
std::vector<pid_t> JobChildren::send_kill() const {
  std::vector<pid_t> killed;
  for (const pid_t pid : list_children()) {
    if (others_.contains(pid) || excluded_.contains(pid)) continue;
    // Orphans of other processes become our children too; only the job's processes carry its id.
    if (!others_.empty() && !has_environment_entry(pid, marker_.c_str())) continue;
    kill(pid, SIGKILL);
    killed.push_back(pid);
  }
  return killed;
}

void JobChildren::kill_all(const OnEnd& on_end) {
  const Deadline deadline = Deadline::after(kill_seconds_max);
  reap(on_end);
  for (auto killed = send_kill(); !killed.empty() && !deadline.passed(); killed = send_kill()) {
    wait_for_any_end(killed, new_orphans_milliseconds);
    reap(on_end);
  }
}

}  // namespace dstrain::launcher
