#include "runtime/base/process_identity.h"

#include <optional>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/unique_fd.h"

namespace dstrain {
namespace {

struct ProcessStat {
  char state = 0;
  std::uint64_t start_ticks = 0;
};

/// Nothing when there is no such process.
std::optional<ProcessStat> read_stat(std::int32_t pid) {
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text(4096, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(length));
  // The second field, the program's name, may hold blanks and parentheses: count from its end.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  ProcessStat stat;
  std::string skipped;
  fields >> stat.state;
  for (int field = 4; field <= 21; ++field) fields >> skipped;
  fields >> stat.start_ticks;
  return stat;
}

std::uint64_t own_pid_namespace() {
  struct stat link {};
  return ::stat("/proc/self/ns/pid", &link) == 0 ? link.st_ino : 0;
}

}  // namespace

ProcessIdentity this_process() {
  const std::int32_t pid = ::getpid();
  return {pid, read_stat(pid).value_or(ProcessStat{}).start_ticks, own_pid_namespace()};
}

bool has_ended(const ProcessIdentity& process) {
  if (process.pid == ::getpid() || process.pid_namespace != own_pid_namespace()) return false;
  const std::optional<ProcessStat> stat = read_stat(process.pid);
  return !stat || stat->state == 'Z' || stat->state == 'X' ||
         stat->start_ticks != process.start_ticks;
}

}  // namespace dstrain
