// What the control group of this process takes away from the machine, in versions 1 and 2.
#include <algorithm>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "runtime/base/number.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr const char* mount = "/sys/fs/cgroup";
constexpr Bytes memory_min = gibibyte;
constexpr std::int64_t tasks_min = 256;

/// A controller of version 1, and the files of both that say the same.
struct Controller {
  const char* name;
  const char* file_v2;
  const char* file_v1;
};

constexpr Controller memory_limit{"memory", "memory.max", "memory.limit_in_bytes"};
constexpr Controller memory_usage{"memory", "memory.current", "memory.usage_in_bytes"};
constexpr Controller process_limit{"pids", "pids.max", "pids.max"};
constexpr Controller cpu_quota{"cpu", "cpu.max", "cpu.cfs_quota_us"};
constexpr Controller cpu_period{"cpu", "cpu.max", "cpu.cfs_period_us"};

/// A directory of the group, with the file in it.
struct Place {
  std::string root;
  std::string group;
  std::string file;
};

/// Where `controller` says something about this process: version 1's directory, else version 2's.
Place place_of(const Probe& probe, const Controller& controller) {
  Place place{mount, "", controller.file_v2};
  for (const std::string& line : lines_of(probe.text("/proc/self/cgroup").value_or(""))) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::vector<std::string> names = split(parts[1], ',');
    if (parts[1].empty()) place.group = parts[2];
    if (std::ranges::find(names, controller.name) == names.end()) continue;
    return {fmt::format("{}/{}", mount, controller.name), parts[2], controller.file_v1};
  }
  return place;
}

/// What each group from this process's up to the root says, as far as it can be seen.
std::vector<std::string> values(const Probe& probe, const Controller& controller) {
  Place place = place_of(probe, controller);
  std::vector<std::string> found;
  for (;;) {
    if (place.group == "/") place.group.clear();
    const auto text = probe.text(fmt::format("{}{}/{}", place.root, place.group, place.file));
    if (text) found.push_back(first_line_of(*text));
    if (place.group.empty()) return found;
    place.group.erase(place.group.rfind('/'));
  }
}

/// The smallest number that one of the groups says; none where nothing is limited.
std::optional<std::int64_t> smallest(const Probe& probe, const Controller& controller) {
  std::optional<std::int64_t> least;
  for (const std::string& text : values(probe, controller)) {
    const auto number = parse_number<std::int64_t>(text);
    if (number && *number >= 0) least = std::min(*number, least.value_or(*number));
  }
  return least;
}

/// Cores of the smallest quota; none where there is none.
std::optional<double> quota_cores(const Probe& probe) {
  std::optional<double> least;
  const std::vector<std::string> quotas = values(probe, cpu_quota);
  const std::vector<std::string> periods = values(probe, cpu_period);
  for (std::size_t i = 0; i < std::min(quotas.size(), periods.size()); ++i) {
    const std::vector<std::string> both = words_of(quotas[i]);  // "QUOTA PERIOD" in version 2
    const auto quota = both.empty() ? std::nullopt : parse_number<double>(both[0]);
    const auto period = parse_number<double>(both.size() > 1 ? both[1] : periods[i]);
    if (!quota || !period || *quota <= 0 || *period <= 0) continue;
    least = std::min(*quota / *period, least.value_or(*quota / *period));
  }
  return least;
}

}  // namespace

void check_memory_limit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Bytes machine =
      memory_row(probe.text("/proc/meminfo").value_or(""), "MemTotal").value_or(0);
  const auto limit = smallest(probe, memory_limit);
  if (!limit || *limit >= machine) return findings.ok("the control group has all of the memory");
  const std::string what = fmt::format("the control group may have {} of the machine's {}",
                                       format_bytes(*limit), format_bytes(machine));
  const std::vector<std::string> used = values(probe, memory_usage);
  const Bytes usage = used.empty() ? 0 : parse_number<Bytes>(used.front()).value_or(0);
  if (*limit < memory_min) {
    findings.problem(what + ": ranks will be killed", "docker run --memory, or sbatch --mem");
  } else if (usage > *limit / 10 * 9) {
    findings.problem(fmt::format("{}, and {} of it is in use", what, format_bytes(usage)),
                     "end what takes it, or raise the limit: docker run --memory, sbatch --mem");
  } else {
    findings.note(what, "--host_memory of dstrain plan must not be more");
  }
}

void check_cpu_limit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto cores = quota_cores(probe);
  if (!cores || *cores >= probe.usable_cores()) {
    return findings.ok(fmt::format("no quota below {} cores", probe.usable_cores()));
  }
  const std::string what = fmt::format("the control group may use {:.2f} cores", *cores);
  if (*cores >= 1) return findings.note(what, "docker run --cpus, or sbatch --cpus-per-task");
  findings.problem(what + ": a rank stands still most of the time",
                   "docker run --cpus, or sbatch --cpus-per-task");
}

void check_process_limit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto limit = smallest(probe, process_limit);
  if (!limit) return findings.ok("the control group does not limit processes");
  const std::string what =
      fmt::format("the control group may have {} processes and threads", *limit);
  if (*limit >= tasks_min) return findings.ok(what);
  findings.problem(what + ": ranks with a thread for each core cannot start",
                   "docker run --pids-limit -1, or raise pids.max of the group");
}

}  // namespace dstrain::launcher::doctor
