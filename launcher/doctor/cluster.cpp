// MPI and SLURM: what else could start ranks here.
#include <array>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "launcher/process/text.h"

namespace dstrain::launcher::doctor {
namespace {

struct Mpi {
  const char* name;
  const char* program;
  const char* package;
};

constexpr std::array mpis{Mpi{"OpenMPI", "mpirun.openmpi", "openmpi-bin"},
                          Mpi{"MPICH", "mpirun.mpich", "mpich"}};
constexpr std::array munge_sockets{"/run/munge/munge.socket.2", "/var/run/munge/munge.socket.2"};
constexpr const char* slurm_file = "/etc/slurm/slurm.conf";

/// "4.1.4" of "mpirun (Open MPI) 4.1.4", or of MPICH's "    Version:     4.0.2".
std::string version_of(const std::string& output) {
  for (const std::string& line : lines_of(output)) {
    for (const std::string& word : words_of(line)) {
      const bool number = word.find_first_not_of("0123456789.") == word.npos;
      if (number && word.find('.') != word.npos) return word;
    }
  }
  return "of an unknown version";
}

/// SLURM_CONF, or the usual file; empty when this machine has none.
std::string slurm_configuration(const Probe& probe) {
  const std::string path = probe.variable("SLURM_CONF").value_or(slurm_file);
  return probe.text(path) ? path : "";
}

bool uses_munge(const Probe& probe, const std::string& configuration) {
  for (const std::string& line : lines_of(probe.text(configuration).value_or(""))) {
    if (line.starts_with("AuthType=")) return line.find("munge") != line.npos;
  }
  return true;  // its default
}

bool munge_answers(const Probe& probe) {
  for (const char* path : munge_sockets) {
    if (probe.is_served(path)) return true;
  }
  return false;
}

}  // namespace

void check_mpi(const Probe& probe, const Question& /*question*/, Findings& findings) {
  bool any = false;
  for (const Mpi& mpi : mpis) {
    if (probe.find_program(mpi.program).empty()) continue;
    any = true;
    const ProgramRun run = probe.run({mpi.program, "--version"});
    if (run.status == 0) {
      findings.ok(fmt::format("{} {} ({})", mpi.name, version_of(run.output), mpi.program));
    } else {
      findings.problem(fmt::format("{} --version fails: {}", mpi.program, last_line(run.output)),
                       fmt::format("apt-get install --reinstall {}", mpi.package));
    }
  }
  if (any) return;
  const std::string other = probe.find_program("mpirun");
  findings.note(other.empty() ? std::string("no mpirun on PATH")
                              : fmt::format("{} is neither Debian's OpenMPI nor its MPICH", other),
                "for ranks that MPI starts: apt-get install openmpi-bin, or mpich");
}

void check_slurm(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto job = probe.variable("SLURM_JOB_ID");
  if (probe.find_program("srun").empty()) {
    if (!job) return findings.ok("not installed");
    return findings.problem(
        fmt::format("this is job {} of SLURM, and there is no srun on PATH", *job),
        "apt-get install slurm-client, or load the cluster's module");
  }
  const std::string configuration = slurm_configuration(probe);
  if (configuration.empty()) {
    return findings.note("srun is there, and no slurm.conf: this machine is of no cluster",
                         "SLURM_CONF names the file if it lies elsewhere");
  }
  if (uses_munge(probe, configuration) && !munge_answers(probe)) {
    return findings.problem(
        fmt::format("{} asks for munge, and nobody answers at {}", configuration,
                    munge_sockets.front()),
        "start munged (systemctl start munge), with the cluster's key in /etc/munge/munge.key");
  }
  findings.ok(job ? fmt::format("inside job {}, {} nodes", *job,
                                probe.variable("SLURM_JOB_NUM_NODES").value_or("1"))
                  : fmt::format("{}; outside an allocation", configuration));
}

/// Debian's OpenMPI meets its other tasks through PMIx alone.
void check_slurm_pmix(const Probe& probe, const Question& /*question*/, Findings& findings) {
  if (probe.find_program("srun").empty() || slurm_configuration(probe).empty()) return;
  const ProgramRun run = probe.run({"srun", "--mpi=list"});
  if (run.status != 0) {
    return findings.problem(fmt::format("srun --mpi=list fails: {}", last_line(run.output)),
                            "see that slurm.conf is the cluster's and slurmctld answers (sinfo)");
  }
  if (run.output.find("pmix") != run.output.npos) {
    return findings.ok("srun offers pmix, as OpenMPI needs");
  }
  if (probe.find_program("mpirun.openmpi").empty()) {
    return findings.note(fmt::format("srun offers no pmix: {}", first_line_of(run.output)));
  }
  findings.problem("srun offers no pmix: each task of OpenMPI would take itself for the only one",
                   "apt-get install slurm-wlm-basic-plugins (mpi_pmix.so), or start with mpirun");
}

}  // namespace dstrain::launcher::doctor
