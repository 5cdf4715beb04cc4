#include "launcher/agent/oom_watch.h"

#include <fstream>
#include <string>
#include <string_view>

#include "runtime/os/control_groups.h"

namespace dstrain::launcher {
namespace {

/// The number after `key` in a file of "key number" lines; -1 when there is none.
long long counter(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  for (long long value = 0; file >> name >> value;) {
    if (name == key) return value;
  }
  return -1;
}

/// Kills counted for this process's memory control group, of version 2 or 1.
long long group_kills() {
  const ControlGroups groups =
      control_groups("memory", [](const std::string& path) { return kernel_text(path); });
  const char* const file = groups.version_1 ? "/memory.oom_control" : "/memory.events";
  for (const std::string& directory : groups.directories) {
    const long long kills = counter(directory + file, "oom_kill");
    if (kills >= 0) return kills;
  }
  return 0;
}

}  // namespace

OomWatch::Counters OomWatch::read() {
  return {group_kills(), counter("/proc/vmstat", "oom_kill")};
}

OomWatch::OomWatch() : before_(read()) {}

KillCause OomWatch::verdict() {
  const Counters now = read();
  const Counters before = before_;
  before_ = now;
  if (now.group > before.group) return KillCause::memory;
  if (now.machine > before.machine) return KillCause::likely_memory;
  return KillCause::maybe_memory;
}

}  // namespace dstrain::launcher
