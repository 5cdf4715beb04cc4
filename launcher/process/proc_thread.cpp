#include "launcher/process/proc_thread.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "launcher/process/text.h"
#include "runtime/base/number.h"

namespace dstrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kernel_frames_max = 12;

std::string task_path(pid_t process, pid_t thread, const char* name) {
  return fmt::format("/proc/{}/task/{}/{}", process, thread, name);
}

/// The file that the first argument of a system call names, when it is a descriptor; else empty.
std::string file_of_call(pid_t process, const std::string& call) {
  std::istringstream words(call);
  std::string number;
  std::string argument;
  words >> number >> argument;
  if (!argument.starts_with("0x")) return "";
  int fd = 0;
  const char* const end = argument.data() + argument.size();
  if (std::from_chars(argument.data() + 2, end, fd, 16).ptr != end) return "";
  std::error_code ignored;
  return fs::read_symlink(fmt::format("/proc/{}/fd/{}", process, fd), ignored).string();
}

}  // namespace

char thread_state(pid_t process, pid_t thread) {
  const std::string line = first_line_of_file(task_path(process, thread, "stat"));
  const std::size_t name_end = line.rfind(") ");  // a name may hold anything
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '?' : line[name_end + 2];
}

std::string_view thread_state_words(char state) {
  switch (state) {
    case 'T':
    case 't':
      return "stopped";
    case 'D':
      return "in uninterruptible sleep";
    case 'R':
      return "running";
    case 'S':
      return "asleep";
    default:
      return "in an unknown state";
  }
}

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    const auto id = parse_number<pid_t>(entry.path().filename().native());
    if (id) threads.push_back(*id);
  }
  std::ranges::sort(threads);
  return threads;
}

std::string thread_name(pid_t process, pid_t thread) {
  return first_line_of_file(task_path(process, thread, "comm"));
}

std::vector<std::string> kernel_view(pid_t process, pid_t thread) {
  std::vector<std::string> lines;
  const std::string wait = first_line_of_file(task_path(process, thread, "wchan"));
  if (!wait.empty() && wait != "0") lines.push_back("waits in the kernel's " + wait);
  const std::string call = first_line_of_file(task_path(process, thread, "syscall"));
  if (!call.empty()) {
    const std::string file = file_of_call(process, call);
    lines.push_back(fmt::format("system call {}{}", call.substr(0, call.find(' ')),
                                file.empty() ? "" : ", of " + file));
  }
  std::ifstream stack(task_path(process, thread, "stack"));
  std::string frame;
  for (std::size_t i = 0; i < kernel_frames_max && std::getline(stack, frame); ++i) {
    lines.push_back("kernel: " + frame.substr(std::min(frame.find("] ") + 2, frame.size())));
  }
  return lines;
}

}  // namespace dstrain::launcher
