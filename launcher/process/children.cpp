#include "launcher/process/children.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

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
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc{} || end != name.data() + name.size()) continue;
    std::istringstream fields = stat_fields(pid);
    std::string state;
    pid_t parent = 0;
    if (fields >> state >> parent && parent == getpid()) children.push_back(pid);
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

}  // namespace dstrain::launcher
