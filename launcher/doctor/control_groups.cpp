// Checks the limits of this process's control group, of version 1 or 2.
#include <algorithm>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "runtime/base/number.h"
#include "runtime/os/available_memory.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr Bytes memory_min = gibibyte;
constexpr std::int64_t tasks_min = 256;

/// The smallest process limit of this process's group and those above it; none if there is no
/// limit.
std::optional<std::int64_t> process_limit(const Probe& probe) {
  const auto text = [&](const std::string& path) {
    return probe.text(path);
  };
  std::optional<std::int64_t> least;
  for (const std::string& directory : control_groups("pids", text).directories) {
    const std::string limit = first_line_of(text(directory + "/pids.max").value_or(""));
    const auto number = parse_number<std::int64_t>(limit);
    if (number && *number >= 0) least = std::min(*number, least.value_or(*number));
  }
  return least;
}

}  // namespace

void check_memory_limit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::vector<LimitedGroup> groups =
      limited_groups([&](const std::string& path) { return probe.text(path); });
  if (groups.empty()) return findings.ok("the control group does not limit memory");
  const LimitedGroup& group = *std::ranges::min_element(groups, {}, &LimitedGroup::limit);
  const Bytes machine =
      memory_row(probe.text("/proc/meminfo").value_or(""), "MemTotal").value_or(0);
  const std::string what = fmt::format("the control group may use {} of the machine's {}",
                                       format_bytes(group.limit), format_bytes(machine));
  if (group.limit < memory_min) {
    findings.problem(what + ": ranks will be killed",
                     "raise the limit: docker run --memory, or sbatch --mem");
  } else if (group.used > group.limit / 10 * 9) {
    findings.problem(
        fmt::format("{}, of which {} is in use", what, format_bytes(group.used)),
        "end processes that use it, or raise the limit: docker run --memory, or sbatch --mem");
  } else {
    findings.note(what, "--host_memory must not be more");
  }
}

void check_cpu_limit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto cores = quota_cores([&](const std::string& path) { return probe.text(path); });
  if (!cores || *cores >= probe.usable_cores()) {
    return findings.ok(fmt::format("no CPU quota below {} cores", probe.usable_cores()));
  }
  const std::string what = fmt::format("the control group may use {:.2f} cores", *cores);
  if (*cores >= 1) return findings.note(what, "docker run --cpus, or sbatch --cpus-per-task");
  findings.problem(what + ": a rank is throttled most of the time",
                   "docker run --cpus, or sbatch --cpus-per-task");
}

void check_process_limit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto limit = process_limit(probe);
  if (!limit) return findings.ok("the control group does not limit processes");
  const std::string what =
      fmt::format("the control group may have {} processes and threads", *limit);
  if (*limit >= tasks_min) return findings.ok(what);
  findings.problem(what + ": ranks with a thread for each core cannot start",
                   "docker run --pids-limit -1, or raise pids.max of the group");
}

}  // namespace dstrain::launcher::doctor
