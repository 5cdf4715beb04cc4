// Checks the directories that jobs write to.
#include <algorithm>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/paths.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr Bytes free_min = gibibyte;
constexpr double megabyte = 1e6;

bool is_network(const std::string& kind) {
  return kind == "nfs" || kind == "smb" || kind == "lustre" || kind == "fuse";
}

/// Reports why it cannot be written to; true if there is a reason.
bool find_obstacle(const Probe& probe,
                   const std::string& path,
                   const DiskSpace& space,
                   Findings& findings) {
  if (space.read_only) {
    findings.problem(fmt::format("{} is mounted read-only", path),
                     "mount -o remount,rw, or choose another directory");
  } else if (!probe.may_write(path)) {
    findings.problem(fmt::format("this user may not write to {}", path),
                     "chown it to this user, or choose another directory");
  } else if (space.free < free_min) {
    findings.problem(fmt::format("{} has {} free of {}", path, format_bytes(space.free),
                                 format_bytes(space.size)),
                     "free space: dstrain checkpoint prune DIR --keep N; df -h shows full disks");
  } else {
    return false;
  }
  return true;
}

void look_at(const Probe& probe, const std::string& path, Findings& findings) {
  const auto space = probe.space(path);
  if (!space) {
    return findings.problem(fmt::format("{} does not exist", path),
                            fmt::format("mkdir -p {}, or mount it on every host", path));
  }
  if (find_obstacle(probe, path, *space, findings)) return;
  const Result<double> rate = probe.write_rate(path);
  const std::string speed = rate.ok() ? fmt::format("writes {:.0f} MB/s", rate.value() / megabyte)
                                      : fmt::format("cannot measure its speed: {}", rate.error());
  const std::string what =
      fmt::format("{}: {}, {} free, {}", path, space->kind, format_bytes(space->free), speed);
  if (space->kind == "tmpfs") {
    findings.note(what + "; it is in memory",
                  "for checkpoints and offload, choose a disk (--path DIR)");
  } else if (is_network(space->kind)) {
    findings.note(what + "; it is a network file system", "for offload, choose a local disk");
  } else {
    findings.ok(what);
  }
}

}  // namespace

std::vector<std::string> directories_of(const Probe& probe, const Question& question) {
  std::vector<std::string> paths{probe.working_directory(),
                                 probe.variable("TMPDIR").value_or("/tmp")};
  for (const std::string& path : question.paths) {
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

void check_disks(const Probe& probe, const Question& question, Findings& findings) {
  for (const std::string& path : directories_of(probe, question)) look_at(probe, path, findings);
}

}  // namespace dstrain::launcher::doctor
