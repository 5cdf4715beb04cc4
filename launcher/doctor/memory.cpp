// Checks the memory that ranks use and share.
#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "runtime/os/available_memory.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr Bytes free_memory_min = 256 * mebibyte;
constexpr Bytes shared_memory_min = gibibyte;
constexpr const char* huge_page_directory = "/sys/kernel/mm/transparent_hugepage/";

std::string swap_of(const std::string& meminfo) {
  const Bytes total = memory_row(meminfo, "SwapTotal").value_or(0);
  if (total == 0) return "no swap";
  const Bytes used = total - memory_row(meminfo, "SwapFree").value_or(total);
  return fmt::format("{} of {} swap used", format_bytes(used), format_bytes(total));
}

}  // namespace

void check_free_memory(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::string meminfo = probe.text("/proc/meminfo").value_or("");
  const auto total = memory_row(meminfo, "MemTotal");
  const auto available = memory_row(meminfo, "MemAvailable");
  if (!total || !available)
    return findings.note("/proc/meminfo does not say how much memory is free");
  const std::string what = fmt::format("{} of {} free, {}", format_bytes(*available),
                                       format_bytes(*total), swap_of(meminfo));
  if (*available >= free_memory_min) return findings.ok(what);
  findings.problem(what, "end processes that use it; ps aux --sort -rss lists them");
}

void check_overcommit(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::string mode = first_line_of(probe.text("/proc/sys/vm/overcommit_memory").value_or(""));
  if (mode != "2") return findings.ok(fmt::format("vm.overcommit_memory is {}", mode));
  findings.problem(
      "vm.overcommit_memory is 2: address space counts as memory, so reserving it may fail",
      "sysctl vm.overcommit_memory=0");
}

void check_memory_file(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Result<bool> made = probe.memory_file();
  if (made.ok()) return findings.ok("memfd_create works: ranks of a node share memory through it");
  findings.problem(fmt::format("memfd_create is refused ({}): ranks of a node cannot share memory",
                               made.error()),
                   "allow it in the container's seccomp profile, or set DSTRAIN_COMM=tcp");
}

void check_shared_memory(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto space = probe.space("/dev/shm");
  if (!space) {
    return findings.problem(
        "there is no /dev/shm, through which MPI and other libraries share memory",
        "mount -t tmpfs tmpfs /dev/shm");
  }
  if (space->read_only || !probe.may_write("/dev/shm")) {
    return findings.problem("this user may not write to /dev/shm: MPI and other libraries fail",
                            "chmod 1777 /dev/shm, or mount it writable");
  }
  const std::string what =
      fmt::format("/dev/shm has {}, {} free", format_bytes(space->size), format_bytes(space->free));
  if (space->size >= shared_memory_min) return findings.ok(what);
  findings.note(what + "; MPI uses it, dstrain's own ranks do not",
                "docker run --shm-size 8g, or mount -o remount,size=8g /dev/shm");
}

void check_huge_pages(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::string directory = huge_page_directory;
  const std::string pages = chosen(probe.text(directory + "enabled").value_or(""));
  const std::string shared = chosen(probe.text(directory + "shmem_enabled").value_or(""));
  if (pages.empty()) return findings.note("this kernel has no transparent huge pages");
  if (pages == "never") {
    findings.note("transparent huge pages are off: large buffers are slower",
                  "echo madvise > " + directory + "enabled");
  }
  if (shared == "never" || shared == "deny") {
    findings.note(fmt::format("huge pages for shared memory: {}; collectives of the ranks of a "
                              "node are slower",
                              shared),
                  "echo advise > " + directory + "shmem_enabled");
  }
  if (findings.empty()) findings.ok(fmt::format("memory: {}; shared: {}", pages, shared));
}

}  // namespace dstrain::launcher::doctor
