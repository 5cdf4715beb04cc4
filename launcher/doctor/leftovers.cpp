// Checks what earlier jobs of this user have left behind.
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/paths.h"
#include "launcher/doctor/texts.h"
#include "launcher/process/text.h"
#include "runtime/base/number.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher::doctor {
namespace {

using Kind = FileFacts::Kind;

constexpr double settled_seconds = 60;  // younger files may still be in use

std::string parent_of(const std::string& status) {
  for (const std::string& line : lines_of(status)) {
    if (line.starts_with("PPid:")) return std::string(trim(std::string_view(line).substr(5)));
  }
  return "";
}

std::string name_of_process(const Probe& probe, const std::string& pid) {
  return first_line_of(probe.text("/proc/" + pid + "/comm").value_or(""));
}

/// Whether a launcher's job contains it: a rank, an agent, or a process that a rank started.
bool was_launched(const Probe& probe, const std::string& pid) {
  const std::string environment = probe.text("/proc/" + pid + "/environ").value_or("");
  for (const std::string& entry : split(environment, '\0')) {
    if (entry.starts_with(std::string(env::job) + "=")) return true;
  }
  return false;
}

/// This user's processes that were launched, and the parent of each.
std::map<std::string, std::string> launched_processes(const Probe& probe) {
  std::map<std::string, std::string> launched;
  for (const std::string& pid : probe.names("/proc")) {
    if (!parse_number<int>(pid) || probe.facts("/proc/" + pid).owner != probe.user()) continue;
    if (!was_launched(probe, pid)) continue;
    launched[pid] = parent_of(probe.text("/proc/" + pid + "/status").value_or(""));
  }
  return launched;
}

/// Whether the process that started it is gone or was left behind too: then init, or the user's
/// systemd, has inherited the first of them. A living launcher, agent or guard would have inherited
/// it. In a container the launcher may be process 1 itself.
bool is_left(const Probe& probe,
             const std::map<std::string, std::string>& launched,
             const std::string& parent) {
  const auto grandparent = launched.find(parent);
  if (grandparent != launched.end()) return is_left(probe, launched, grandparent->second);
  if (parent.empty()) return false;
  const std::string name = name_of_process(probe, parent);
  return parent == "1" ? name != "dstrain" : name == "systemd";
}

/// The pid in "checkpoint-12.tmp-HOST-BOOT-SPACE-PID-START-ATTEMPT"; none in another name.
std::optional<std::string> writer_of(const std::string& name, const std::string& host) {
  constexpr std::string_view mark = ".tmp-";
  const std::size_t at = name.find(mark);
  if (!name.starts_with("checkpoint-") || at == name.npos) return std::nullopt;
  if (name.compare(at + mark.size(), host.size() + 1, host + "-") != 0) return std::nullopt;
  const std::vector<std::string> parts = split(std::string_view(name).substr(at), '-');
  if (parts.size() < 6) return std::nullopt;
  return parts[parts.size() - 3];
}

/// Why a file was left; empty when it was not.
std::string left_because(const Probe& probe, const std::string& path, const std::string& name) {
  if (const auto pid = writer_of(name, probe.host_name())) {
    const bool lives = probe.facts("/proc/" + *pid).kind == Kind::directory;
    return lives ? "" : "an unfinished checkpoint";
  }
  const FileFacts facts = probe.facts(path);
  if (facts.owner != probe.user() || facts.age_seconds < settled_seconds) return "";
  if (name.starts_with("dstrain-swap-")) return "a swap file that was not deleted";
  if (name.starts_with("dstrain-doctor-")) return "a file of an interrupted measurement";
  return "";
}

/// Without a systemd session there is no directory to name.
std::string runtime_directory_fix(const Probe& probe, const std::string& wrong) {
  const std::string usual = fmt::format("/run/user/{}", probe.user());
  const bool there = usual != wrong && probe.facts(usual).kind == Kind::directory;
  return there ? fmt::format("export XDG_RUNTIME_DIR={}, or unset it", usual)
               : "unset XDG_RUNTIME_DIR";
}

std::vector<std::string> usual_job_directories(const Probe& probe) {
  std::vector<std::string> paths;
  const auto runtime = probe.variable("XDG_RUNTIME_DIR");
  if (runtime && runtime->starts_with('/')) paths.push_back(*runtime + "/dstrain");
  paths.push_back(fmt::format("/tmp/dstrain-{}", probe.user()));
  return paths;
}

bool is_own_directory(const FileFacts& facts, unsigned user) {
  return facts.kind == Kind::directory && facts.owner == user && !facts.is_open_to_others();
}

}  // namespace

std::vector<std::string> job_directories(const Probe& probe) {
  std::vector<std::string> paths;
  for (const std::string& usual : usual_job_directories(probe)) {
    paths.push_back(usual);
    const std::size_t slash = usual.rfind('/');
    for (const std::string& name : probe.names(usual.substr(0, slash))) {
      if (!name.starts_with(usual.substr(slash + 1) + "-")) continue;
      const std::string path = usual.substr(0, slash + 1) + name;
      if (is_own_directory(probe.facts(path), probe.user())) paths.push_back(path);
    }
  }
  return paths;
}

void check_leftover_processes(const Probe& probe,
                              const Question& /*question*/,
                              Findings& findings) {
  std::vector<std::string> left;
  std::vector<std::string> named;
  const std::map<std::string, std::string> launched = launched_processes(probe);
  for (const auto& [pid, parent] : launched) {
    if (!is_left(probe, launched, parent)) continue;
    left.push_back(pid);
    named.push_back(fmt::format("{} ({})", pid, name_of_process(probe, pid)));
  }
  if (left.empty()) return findings.ok("no leftover process of an earlier job");
  findings.problem(
      fmt::format("processes of jobs without a launcher: {}", fmt::join(named, ", ")),
      fmt::format("kill {0}; if that does not help: kill -9 {0}", fmt::join(left, " ")));
}

void check_leftover_files(const Probe& probe, const Question& question, Findings& findings) {
  for (const std::string& directory : directories_of(probe, question)) {
    for (const std::string& name : probe.names(directory)) {
      const std::string path = fmt::format("{}/{}", directory, name);
      const std::string reason = left_because(probe, path, name);
      if (reason.empty()) continue;
      findings.problem(fmt::format("{}: {}", path, reason), fmt::format("rm -r {}", path));
    }
  }
  if (findings.empty()) findings.ok("no leftover swap file or unfinished checkpoint");
}

void check_job_sockets(const Probe& probe, const Question& /*question*/, Findings& findings) {
  int running = 0;
  for (const std::string& directory : job_directories(probe)) {
    std::vector<std::string> dead;
    for (const std::string& name : probe.names(directory)) {
      if (!name.ends_with(".sock")) continue;
      if (probe.is_served(fmt::format("{}/{}", directory, name))) {
        ++running;
      } else {
        dead.push_back(name);
      }
    }
    if (dead.empty()) continue;
    findings.note(fmt::format("{} holds sockets of {} ended jobs, such as {}", directory,
                              dead.size(), dead.back()),
                  "run dstrain status, which removes them");
  }
  if (findings.empty()) findings.ok(fmt::format("{} jobs running", running));
}

void check_runtime_directory(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto runtime = probe.variable("XDG_RUNTIME_DIR");
  if (runtime && !runtime->empty()) {
    const FileFacts facts = probe.facts(*runtime);
    const bool own = facts.owner == probe.user() && !facts.others_may_write();
    if (facts.kind != Kind::directory || !own) {
      findings.problem(fmt::format("XDG_RUNTIME_DIR, {}, {}", *runtime,
                                   facts.kind != Kind::directory
                                       ? "is not a directory"
                                       : "does not belong to this user alone (after su?)"),
                       runtime_directory_fix(probe, *runtime));
    }
  }
  for (const std::string& path : usual_job_directories(probe)) {
    const FileFacts facts = probe.facts(path);
    if (facts.kind == Kind::absent || is_own_directory(facts, probe.user())) continue;
    findings.note(
        fmt::format("{0} does not belong to this user alone: jobs use {0}-RANDOM instead", path),
        fmt::format("rm -r {0}, or chmod 700 {0} if it is yours", path));
  }
  if (findings.empty()) findings.ok(usual_job_directories(probe).front());
}

}  // namespace dstrain::launcher::doctor
