#include "launcher/plan/task_launcher.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "launcher/plan/host_name.h"
#include "launcher/plan/machine.h"
#include "launcher/plan/resources.h"
#include "launcher/process/program_output.h"
#include "launcher/process/program_path.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr double list_seconds = 10;  // for srun to say what it has

/// What is known of each.
struct Entry {
  TaskLauncher launcher;
  std::string_view name;
  std::array<const char*, 2> programs;  ///< the one that is no other's first
  const char* package;
  const char* rank_variable;  ///< in which a task finds its rank
};

constexpr std::array<Entry, 3> task_launchers{{
    {TaskLauncher::slurm, "slurm", {"srun", "srun"}, "slurm-client", "SLURM_PROCID"},
    {TaskLauncher::openmpi,
     "openmpi",
     {"mpirun.openmpi", "mpirun"},
     "openmpi-bin",
     "OMPI_COMM_WORLD_RANK"},
    {TaskLauncher::mpich, "mpich", {"mpiexec.mpich", "mpiexec.hydra"}, "mpich", "PMI_RANK"},
}};

const Entry& entry_of(TaskLauncher launcher) {
  return task_launchers[static_cast<std::size_t>(launcher)];
}

std::string find_program(const Entry& entry) {
  for (const char* const name : entry.programs) {
    std::string path = find_on_path(name);
    if (!path.empty()) return path;
  }
  fail(ErrorCode::remote, "--launcher {}: {} was not found on PATH (Debian: {})", entry.name,
       entry.programs.back(), entry.package);
}

/// Whether this SLURM has PMIx, without which an MPI program finds itself alone.
bool has_pmix(const std::string& srun) {
  const Result<ProgramOutput> output = run_program({srun, "--mpi=list"}, list_seconds);
  if (!output.ok()) fail(ErrorCode::remote, "{}", output.error());
  return output.value().text.find("pmix") != std::string::npos;
}

/// One line per rank.
std::string host_of_each_rank(const HostPlan& plan) {
  std::string lines;
  for (const RankPlace& place : plan.ranks()) lines += plan.host_of(place).host + "\n";
  return lines;
}

/// The same for mpirun, whose sequential mapping does not know localhost.
std::string named_host_of_each_rank(const HostPlan& plan) {
  const std::string this_host = this_machine().host_name;
  std::string lines;
  for (const RankPlace& place : plan.ranks()) {
    const std::string& host = plan.host_of(place).host;
    lines += (is_this_machine(host, "") ? this_host : host) + "\n";
  }
  return lines;
}

/// What mpiexec reads up to the first colon as a host.
std::string host_without_colon(const std::string& host) {
  if (host.find(':') == std::string::npos) return host;
  if (is_this_machine(host, "")) return "localhost";
  fail(ErrorCode::remote,
       "{}: mpiexec of MPICH takes no IPv6 address of another host: give it a name, in /etc/hosts "
       "if need be, or use --launcher ssh or openmpi",
       host);
}

/// "HOST:RANKS" lines.
std::string ranks_of_each_host(const HostPlan& plan) {
  std::string lines;
  for (const HostSlots& host : plan.hosts()) {
    lines += fmt::format("{}:{}\n", host_without_colon(host.host), host.slots.size());
  }
  return lines;
}

/// The first rank that ends with an error ends the step; that one rank has ended does not. Ranks
/// share the cores of their node by themselves.
Words srun_words(const std::string& srun, const HostPlan& plan) {
  Words words{srun,
              "--distribution=arbitrary",
              fmt::format("--nodes={}", plan.hosts().size()),
              fmt::format("--ntasks={}", plan.world_size()),
              "--kill-on-bad-exit=1",
              "--wait=0",
              "--overcommit",
              "--cpu-bind=none",
              "--input=none",
              "--export=ALL",
              has_pmix(srun) ? "--mpi=pmix" : "--mpi=none"};
  if (std::getenv("SLURM_STEP_ID") != nullptr) words.emplace_back("--overlap");
  return words;
}

Words mpirun_words(const std::string& mpirun, const HostPlan& plan, bool oversubscribe) {
  Words words{mpirun,
              "-np",
              std::to_string(plan.world_size()),
              "--hostfile",
              "/dev/stdin",
              "--map-by",
              "seq",
              "--bind-to",
              "none",
              "--stdin",
              "none",
              "-x",
              std::string(agents_variable)};
  if (oversubscribe) words.emplace_back("--oversubscribe");
  return words;
}

Words mpiexec_words(const std::string& mpiexec, const HostPlan& plan) {
  return {mpiexec, "-f", "/dev/stdin", "-n", std::to_string(plan.world_size())};
}

}  // namespace

std::string_view name_of(TaskLauncher launcher) {
  return entry_of(launcher).name;
}

std::optional<TaskLauncher> task_launcher_named(std::string_view name) {
  for (const Entry& entry : task_launchers) {
    if (entry.name == name) return entry.launcher;
  }
  return std::nullopt;
}

TaskCommand make_task_command(const Resources& resources, const LaunchOptions& options) {
  const HostPlan& plan = resources.plan;
  const Entry& entry = entry_of(*resources.task_launcher);
  const std::string program = find_program(entry);
  TaskCommand command;
  command.here_only =
      std::find(resources.remote.begin(), resources.remote.end(), true) == resources.remote.end();
  switch (entry.launcher) {
    case TaskLauncher::slurm:
      command.argv = srun_words(program, plan);
      command.host_list = host_of_each_rank(plan);
      command.env = {{"SLURM_HOSTFILE", "/dev/stdin"}};
      break;
    case TaskLauncher::openmpi:
      command.argv = mpirun_words(program, plan, options.oversubscribe);
      command.host_list = named_host_of_each_rank(plan);
      break;
    case TaskLauncher::mpich:
      command.argv = mpiexec_words(program, plan);
      command.host_list = ranks_of_each_host(plan);
      break;
  }
  Words& argv = command.argv;
  argv.insert(argv.end(), options.launcher_args.begin(), options.launcher_args.end());
  const Words agent{own_path(), "agent", std::string(connecting_agent), entry.rank_variable};
  argv.insert(argv.end(), agent.begin(), agent.end());
  return command;
}

}  // namespace dstrain::launcher
