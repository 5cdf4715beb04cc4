// Checks MPI and SLURM, which can start ranks too.
#include <array>
#include <optional>

#include <strings.h>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "launcher/plan/task_launcher.h"
#include "launcher/process/text.h"

namespace dstrain::launcher::doctor {
namespace {

struct Mpi {
  TaskLauncher launcher;
  const char* name;
  const char* package;
};

constexpr std::array mpis{Mpi{TaskLauncher::openmpi, "OpenMPI", "openmpi-bin"},
                          Mpi{TaskLauncher::mpich, "MPICH", "mpich"}};
constexpr const char* munge_socket = "/run/munge/munge.socket.2";
constexpr const char* slurm_file = "/etc/slurm/slurm.conf";

/// SLURM_CONF, or the usual file.
std::string slurm_configuration(const Probe& probe) {
  return probe.variable("SLURM_CONF").value_or(slurm_file);
}

/// A value of slurm.conf, whose keys ignore case.
std::optional<std::string> slurm_value(const std::string& configuration, const char* key) {
  for (const std::string& line : lines_of(configuration)) {
    const std::string_view plain = std::string_view(line).substr(0, line.find('#'));
    const std::size_t equals = plain.find('=');
    if (equals == plain.npos) continue;
    if (::strcasecmp(std::string(trim(plain.substr(0, equals))).c_str(), key) != 0) continue;
    return std::string(trim(plain.substr(equals + 1)));
  }
  return std::nullopt;
}

/// The socket of munged, from "AuthInfo=socket=/x,cred_expire=5", else the usual one. Empty: munge
/// is not used.
std::string expected_munge_socket(const std::string& configuration) {
  if (slurm_value(configuration, "AuthType").value_or("munge").find("munge") == std::string::npos) {
    return "";
  }
  constexpr std::string_view option = "socket=";
  for (const std::string& part : split(slurm_value(configuration, "AuthInfo").value_or(""), ',')) {
    if (trim(part).starts_with(option)) return std::string(trim(part).substr(option.size()));
  }
  return munge_socket;
}

void explain_no_configuration(const Probe& probe, Findings& findings) {
  const auto typed = probe.variable("SLURM_CONF");
  if (!typed) {
    return findings.note(
        "srun is installed, but there is no slurm.conf: this machine is not part of a cluster",
        "if the file lies elsewhere, set SLURM_CONF to it");
  }
  const bool there = probe.facts(*typed).kind != FileFacts::Kind::absent;
  findings.problem(fmt::format("SLURM_CONF is set to \"{}\", which {}: no SLURM command works",
                               *typed, there ? "cannot be read" : "does not exist"),
                   "unset SLURM_CONF, or set it to the cluster's slurm.conf");
}

/// OpenMPI's mpirun refuses root unless two variables allow it.
void look_at_root(const Probe& probe, Findings& findings) {
  const auto allows = [&](const char* name) {
    return probe.variable(name).value_or("") == "1";
  };
  if (probe.user() != 0) return;
  if (allows("OMPI_ALLOW_RUN_AS_ROOT") && allows("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")) return;
  findings.note(
      "OpenMPI's mpirun refuses to run as root, which is this user",
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, or run as another user");
}

/// Whether one of its programs is installed, which shows in its output, not in its name.
bool look_at_mpi(const Mpi& mpi, const Probe& probe, Findings& findings) {
  const std::vector<std::string> programs = program_names(mpi.launcher);
  for (const std::string& program : programs) {
    if (probe.find_program(program).empty()) continue;
    const ProgramRun run = probe.run({program, "--version"});
    if (run.status != 0 && program == programs.front()) {
      findings.problem(fmt::format("{} --version fails: {}", program, last_line(run.output)),
                       fmt::format("apt-get install --reinstall {}", mpi.package));
      return true;
    }
    const auto version = task_launcher_version(run.output);
    if (run.status != 0 || !version || version->launcher != mpi.launcher) continue;
    findings.ok(fmt::format("{} {} ({})", mpi.name, version->text, program));
    if (mpi.launcher == TaskLauncher::openmpi) look_at_root(probe, findings);
    return true;
  }
  return false;
}

}  // namespace

void check_mpi(const Probe& probe, const Question& /*question*/, Findings& findings) {
  bool any = false;
  for (const Mpi& mpi : mpis) any |= look_at_mpi(mpi, probe, findings);
  if (any) return;
  const std::string other = probe.find_program("mpirun");
  findings.note(other.empty() ? std::string("no mpirun on PATH")
                              : fmt::format("{} is neither OpenMPI's nor MPICH's", other),
                "to start ranks with MPI: apt-get install openmpi-bin, or mpich");
}

void check_slurm(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto job = probe.variable("SLURM_JOB_ID");
  if (probe.find_program("srun").empty()) {
    if (!job) return findings.ok("not installed");
    return findings.problem(fmt::format("this is SLURM job {}, but there is no srun on PATH", *job),
                            "apt-get install slurm-client, or load the cluster's module");
  }
  const std::string file = slurm_configuration(probe);
  const auto configuration = probe.text(file);
  if (!configuration) return explain_no_configuration(probe, findings);
  const std::string socket = expected_munge_socket(*configuration);
  if (!socket.empty() && !probe.is_served(socket)) {
    return findings.problem(
        fmt::format("{} requires munge, but nothing answers at {}", file, socket),
        "start munged (systemctl start munge), with the cluster's key in /etc/munge/munge.key");
  }
  findings.ok(job ? fmt::format("inside job {}, {} nodes", *job,
                                probe.variable("SLURM_JOB_NUM_NODES").value_or("1"))
                  : fmt::format("{}; outside an allocation", file));
}

/// Debian's OpenMPI finds its other tasks only through PMIx.
void check_slurm_pmix(const Probe& probe, const Question& /*question*/, Findings& findings) {
  if (probe.find_program("srun").empty() || !probe.text(slurm_configuration(probe))) return;
  const ProgramRun run = probe.run({"srun", "--mpi=list"});
  if (run.status != 0) {
    return findings.problem(fmt::format("srun --mpi=list fails: {}", last_line(run.output)),
                            "check that slurm.conf is the cluster's and slurmctld answers (sinfo)");
  }
  if (run.output.find("pmix") != run.output.npos) {
    return findings.ok("srun offers pmix, which OpenMPI needs");
  }
  if (probe.find_program("mpirun.openmpi").empty()) {
    return findings.note(fmt::format("srun offers no pmix: {}", first_line_of(run.output)));
  }
  findings.problem(
      "srun offers no pmix: each OpenMPI task would run as the only one",
      "apt-get install slurm-wlm-basic-plugins (mpi_pmix.so), or start ranks with mpirun");
}

}  // namespace dstrain::launcher::doctor
