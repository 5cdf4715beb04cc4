#include "runtime/os/control_groups.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include <sched.h>
#include <unistd.h>

#include "runtime/base/number.h"

namespace dstrain {
namespace {

constexpr const char* mount = "/sys/fs/cgroup";

/// Whether a list, "cpu,cpuacct", has a name.
bool lists(const std::string& names, std::string_view name) {
  std::istringstream parts(names);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part == name) return true;
  }
  return false;
}

/// Returns the n-th word of a text as a number; none if it is not one.
std::optional<double> number_at(const std::optional<std::string>& text, int n) {
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  std::string word;
  for (int i = 0; i <= n; ++i) {
    if (!(words >> word)) return std::nullopt;
  }
  return parse_number<double>(word);
}

/// Returns the cores in the affinity mask, which may be larger than cpu_set_t.
int affinity_cores() {
  for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(cpus)), [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

ControlGroups control_groups(std::string_view controller, KernelText text) {
  std::string root = mount;
  std::string group;
  ControlGroups found;
  std::istringstream lines(text("/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {  // "ID:CONTROLLERS:GROUP"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (names.empty() && !found.version_1) group = line.substr(second + 1);
    if (!lists(names, controller)) continue;
    found.version_1 = true;
    root = std::string(mount) + "/" + std::string(controller);
    group = line.substr(second + 1);
  }
  for (;;) {
    while (group.ends_with('/')) group.pop_back();
    found.directories.push_back(root + group);
    if (group.empty()) return found;
    group.erase(std::min(group.rfind('/'), group.size()));
  }
}

std::optional<double> quota_cores(KernelText text) {
  const ControlGroups groups = control_groups("cpu", text);
  std::optional<double> least;
  for (const std::string& directory : groups.directories) {
    const auto quota = groups.version_1 ? number_at(text(directory + "/cpu.cfs_quota_us"), 0)
                                        : number_at(text(directory + "/cpu.max"), 0);
    const auto period = groups.version_1 ? number_at(text(directory + "/cpu.cfs_period_us"), 0)
                                         : number_at(text(directory + "/cpu.max"), 1);
    if (!quota || !period || *quota <= 0 || *period <= 0) continue;
    least = std::min(*quota / *period, least.value_or(*quota / *period));
  }
  return least;
}

int cores_within_quota(int cores) {
  const auto quota = quota_cores([](const std::string& path) { return kernel_text(path); });
  return static_cast<int>(std::min(static_cast<double>(cores), std::ceil(quota.value_or(cores))));
}

int usable_cores() {
  return cores_within_quota(std::max(1, affinity_cores()));
}

std::optional<std::string> kernel_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace dstrain
