// Checks the kernel's limits on a process of this user.
#include <cerrno>
#include <system_error>

#include <sys/resource.h>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr std::uint64_t locked_memory_min = 8 << 20;  // the kernel's own default, bytes
constexpr std::uint64_t open_files_min = 1024;
constexpr std::uint64_t processes_each_core = 16;
constexpr std::uint64_t processes_min = 256;

std::string count(std::uint64_t value) {
  return value == Limit::unlimited ? "unlimited" : std::to_string(value);
}

std::string bytes(std::uint64_t value) {
  return value == Limit::unlimited ? "unlimited" : format_bytes(static_cast<Bytes>(value));
}

/// What refuses io_uring with this error.
std::string uring_cause(const Probe& probe, int error) {
  const std::string disabled =
      first_line_of(probe.text("/proc/sys/kernel/io_uring_disabled").value_or(""));
  if (!disabled.empty() && disabled != "0") {
    return fmt::format("the setting kernel.io_uring_disabled={}", disabled);
  }
  if (error == EPERM) return "a seccomp profile, as in containers";
  if (error == ENOMEM) return "the limit on locked memory";
  return error == ENOSYS ? "a kernel that lacks it" : std::generic_category().message(error);
}

std::string uring_fix(const std::string& cause) {
  if (cause.find("setting") != cause.npos) return "sysctl kernel.io_uring_disabled=0";
  if (cause.find("seccomp") != cause.npos) return "docker run --security-opt seccomp=unconfined";
  if (cause.find("locked") != cause.npos) return "ulimit -l unlimited";
  return "install a kernel of version 5.6 or newer";
}

}  // namespace

void check_locked_memory(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Limit limit = probe.limit(RLIMIT_MEMLOCK);
  const std::string what = fmt::format("the locked-memory limit is {}", bytes(limit.soft));
  if (limit.soft == Limit::unlimited || probe.user() == 0) return findings.ok(what);
  if (limit.soft < locked_memory_min) {
    return findings.problem(what + ": io_uring and pinned buffers of offload are refused",
                            "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf");
  }
  findings.note(what + "; pinned buffers of offload (pin_memory) must fit into it",
                "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf");
}

void check_open_files(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Limit limit = probe.limit(RLIMIT_NOFILE);
  const std::string what =
      fmt::format("{} open files (at most {})", count(limit.soft), count(limit.hard));
  if (limit.soft >= open_files_min) return findings.ok(what);
  findings.problem(what + ": jobs of many ranks or hosts fail",
                   fmt::format("ulimit -n {}; for good: nofile in /etc/security/limits.conf",
                               std::min<std::uint64_t>(limit.hard, 65536)));
}

void check_processes(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Limit limit = probe.limit(RLIMIT_NPROC);
  const auto cores = static_cast<std::uint64_t>(probe.usable_cores());
  const std::string what = fmt::format("{} processes and threads of this user", count(limit.soft));
  if (limit.soft >= std::max(processes_min, processes_each_core * cores)) return findings.ok(what);
  findings.problem(what + ": ranks with a thread for each core cannot start",
                   "ulimit -u unlimited; for good: nproc in /etc/security/limits.conf");
}

void check_core_files(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Limit limit = probe.limit(RLIMIT_CORE);
  if (limit.soft != Limit::unlimited) {
    return findings.ok(fmt::format("core files of at most {}", bytes(limit.soft)));
  }
  findings.note("core files are unlimited: each crashed rank writes its whole memory to the disk",
                "ulimit -c 0, unless you need them");
}

void check_io_uring(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const int error = probe.uring_error();
  if (error == 0) return findings.ok("io_uring works");
  const std::string cause = uring_cause(probe, error);
  if (probe.variable("DSTRAIN_IO").value_or("") == "uring") {
    return findings.problem(
        fmt::format("DSTRAIN_IO=uring, but io_uring is refused by {}", cause),
        uring_fix(cause) + ", or unset DSTRAIN_IO: threads then read and write");
  }
  findings.note(fmt::format("io_uring is refused by {}; threads read and write swap files", cause),
                uring_fix(cause));
}

}  // namespace dstrain::launcher::doctor
