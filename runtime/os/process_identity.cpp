#include "runtime/os/process_identity.h"

#include <cerrno>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/unique_handle.h"

namespace dstrain {
namespace {

struct ProcessStat {
  char state = 0;
  std::uint64_t start_ticks = 0;
};

enum class Existence { none, exists, not_known };

/// Reads the state of `pid`; sets `stat` if it exists.
Existence read_stat(std::int32_t pid, ProcessStat& stat) {
  // Only these errors mean that there is no such process; a lack of descriptors or memory does not.
  const auto without_stat = [] {
    return errno == ENOENT || errno == ESRCH ? Existence::none : Existence::not_known;
  };
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return without_stat();
  std::string text(4096, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length < 0) return without_stat();
  text.resize(static_cast<std::size_t>(length));
  // The second field, the program's name, may hold blanks and parentheses: count from its end.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  fields >> stat.state;
  for (int field = 4; field <= 21; ++field) fields >> skipped;
  fields >> stat.start_ticks;
  return fields ? Existence::exists : Existence::not_known;
}

std::uint64_t own_pid_namespace() {
  struct stat link {};
  return ::stat("/proc/self/ns/pid", &link) == 0 ? link.st_ino : 0;
}

}  // namespace

ProcessIdentity this_process() {
  const std::int32_t pid = ::getpid();
  ProcessStat stat;
  const bool known = read_stat(pid, stat) == Existence::exists;
  return {pid, known ? stat.start_ticks : 0, own_pid_namespace()};
}

bool has_ended(const ProcessIdentity& process) {
  const std::uint64_t visible = own_pid_namespace();
  if (process.pid == ::getpid() || visible == 0 || process.pid_namespace != visible) return false;
  ProcessStat stat;
  const Existence existence = read_stat(process.pid, stat);
  if (existence != Existence::exists) return existence == Existence::none;
  const bool reused = process.start_ticks != 0 && stat.start_ticks != process.start_ticks;
  return reused || stat.state == 'Z' || stat.state == 'X';
}

}  // namespace dstrain
