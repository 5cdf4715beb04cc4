#include "launcher/agent/oom_watch.h"

#include <fstream>
#include <string>
#include <string_view>

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
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t path_start = line.find(':', line.find(':') + 1);
    if (path_start == line.npos) continue;
    const std::string path = line.substr(path_start + 1);
    if (line.find(":memory:") != line.npos) {
      // Within a container the path is often the host's, and the group is mounted as the root.
      for (const std::string& group : {path, std::string()}) {
        const long long kills =
            counter("/sys/fs/cgroup/memory" + group + "/memory.oom_control", "oom_kill");
        if (kills >= 0) return kills;
      }
    }
    if (line.starts_with("0::")) {
      const long long kills = counter("/sys/fs/cgroup" + path + "/memory.events", "oom_kill");
      if (kills >= 0) return kills;
    }
  }
  return 0;
}

}  // namespace

OomWatch::Counters OomWatch::read() {
  return {group_kills(), counter("/proc/vmstat", "oom_kill")};
}

OomWatch::OomWatch() : before_(read()) {}

OomVerdict OomWatch::verdict() {
  const Counters now = read();
  const Counters before = before_;
  before_ = now;
  if (now.group > before.group) return OomVerdict::certain;
  if (now.machine > before.machine) return OomVerdict::likely;
  return OomVerdict::possible;
}

}  // namespace dstrain::launcher
