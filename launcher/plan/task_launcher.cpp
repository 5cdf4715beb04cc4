#include "launcher/plan/task_launcher.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "launcher/plan/host_name.h"
#include "launcher/plan/machine.h"
#include "launcher/plan/resources.h"
#include "launcher/process/process.h"
#include "launcher/process/program_output.h"
#include "launcher/process/program_path.h"
#include "launcher/process/text.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"

namespace dstrain::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr double answer_seconds = 10;  // for a program to say what it is

/// What the command prints, errors included, or why it prints nothing.
std::string answer_of(const std::vector<std::string>& command) {
  const Result<ProgramOutput> output = run_program(command, answer_seconds);
  if (!output.ok()) return output.error();
  if (!output.value().wait_status) return fmt::format("no answer within {} s", answer_seconds);
  if (last_line(output.value().text).empty()) return describe_end(*output.value().wait_status);
  return output.value().text;
}

/// Whether this SLURM has PMIx. Without it, each task of an MPI program would run as the only one.
bool has_pmix(const std::string& srun) {
  return answer_of({srun, "--mpi=list"}).find("pmix") != std::string::npos;
}

/// The input of a task launcher's command line.
struct Start {
  const std::string& program;
  const HostPlan& plan;
  bool oversubscribe;
};

/// A task launcher's command line up to the program, and its stdin.
struct Told {
  Words words;
  std::string host_list;
};

/// One line per rank.
std::string host_of_each_rank(const HostPlan& plan) {
  std::string lines;
  for (const RankAssignment& rank : plan.ranks()) lines += plan.host_of(rank).host + "\n";
  return lines;
}

/// The same for mpirun, whose sequential mapping does not accept localhost before OpenMPI 5.
std::string named_host_of_each_rank(const HostPlan& plan) {
  const std::string this_host = this_machine().host_name;
  std::string lines;
  for (const RankAssignment& rank : plan.ranks()) {
    const std::string& host = plan.host_of(rank).host;
    lines += (is_this_machine(host, "") ? this_host : host) + "\n";
  }
  return lines;
}

/// mpiexec reads a host up to the first colon.
std::string host_without_colon(const std::string& host) {
  if (host.find(':') == std::string::npos) return host;
  if (is_this_machine(host, "")) return "localhost";
  fail(ErrorCode::remote,
       "{}: MPICH's mpiexec does not accept the IPv6 address of another host; give the host a "
       "name, in /etc/hosts if necessary, or use --launcher ssh or openmpi",
       host);
}

/// "HOST:RANKS,HOST:RANKS".
std::string ranks_of_each_host(const HostPlan& plan) {
  std::string list;
  for (const HostSlots& host : plan.hosts()) {
    if (!list.empty()) list += ',';
    list += fmt::format("{}:{}", host_without_colon(host.host), host.slots.size());
  }
  return list;
}

/// The first rank that ends with an error ends the step; a rank that ends without one does not.
/// Ranks share the cores of their node by themselves. The list implies the number of nodes: SLURM
/// 23.11 and newer refuse --nodes beside it. The list is not passed as SLURM_HOSTFILE, because
/// ranks would inherit that, and their own srun and sbatch would read it.
Told tell_srun(const Start& start) {
  Words words{start.program,
              "--distribution=arbitrary",
              "--nodelist=/dev/stdin",
              fmt::format("--ntasks={}", start.plan.world_size()),
              "--kill-on-bad-exit=1",
              "--wait=0",
              "--overcommit",
              "--cpu-bind=none",
              "--input=none",
              "--export=ALL",
              has_pmix(start.program) ? "--mpi=pmix" : "--mpi=none"};
  if (std::getenv("SLURM_STEP_ID") != nullptr) words.emplace_back("--overlap");
  return {std::move(words), host_of_each_rank(start.plan)};
}

Told tell_mpirun(const Start& start) {
  Words words{start.program,
              "-np",
              std::to_string(start.plan.world_size()),
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
  if (start.oversubscribe) words.emplace_back("--oversubscribe");
  return {std::move(words), named_host_of_each_rank(start.plan)};
}

/// Passes no list in stdin, because mpiexec would also copy that to rank 0.
Told tell_mpiexec(const Start& start) {
  return {{start.program, "-hosts", ranks_of_each_host(start.plan), "-n",
           std::to_string(start.plan.world_size())},
          ""};
}

/// The properties of each launcher, in the order of TaskLauncher.
struct Entry {
  std::string_view name;
  std::array<const char*, 4> programs;  ///< names to look for, the least ambiguous first
  const char* package;
  const char* rank_variable;                ///< in which a task finds its rank
  std::array<std::string_view, 2> banners;  ///< in what --version prints; the version follows one
  std::pair<int, int> oldest;  ///< version that was tested or whose documents were read
  Told (*tell)(const Start&);
};

constexpr std::array<Entry, 3> task_launchers{{
    {"slurm", {"srun"}, "slurm-client", "SLURM_PROCID", {"slurm"}, {20, 11}, tell_srun},
    {"openmpi",
     {"mpirun.openmpi", "mpirun", "mpiexec"},
     "openmpi-bin",
     "OMPI_COMM_WORLD_RANK",
     {"(Open MPI)", "(OpenRTE)"},
     {4, 0},
     tell_mpirun},
    {"mpich",
     {"mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"},
     "mpich",
     "PMI_RANK",
     {"HYDRA"},
     {3, 3},
     tell_mpiexec},
}};

/// SLURM last: the output of the others may name it.
constexpr std::array all_task_launchers{TaskLauncher::openmpi, TaskLauncher::mpich,
                                        TaskLauncher::slurm};

const Entry& entry_of(TaskLauncher launcher) {
  return task_launchers[static_cast<std::size_t>(launcher)];
}

/// The first "N.N" of a text, with the rest of the version.
std::optional<TaskLauncherVersion> first_version(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  text = text.substr(0, text.find_first_not_of("0123456789."));
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const std::string_view rest = text.substr(dot + 1);
  const auto major = parse_number<int>(text.substr(0, dot));
  const auto minor = parse_number<int>(rest.substr(0, rest.find('.')));
  if (!major || !minor) return std::nullopt;
  return TaskLauncherVersion{.major = *major, .minor = *minor, .text = std::string(text)};
}

/// A program on PATH that is a task launcher.
struct FoundProgram {
  std::string path;
  TaskLauncherVersion version;
};

/// The first program on PATH that belongs to the launcher, whatever its name: `mpirun` and
/// `mpiexec` may belong to any MPI.
FoundProgram find_program(TaskLauncher launcher) {
  const Entry& entry = entry_of(launcher);
  std::string others;
  for (const std::string& name : program_names(launcher)) {
    for (const std::string& path : all_on_path(name)) {
      const std::string printed = answer_of({path, "--version"});
      const auto version = task_launcher_version(printed);
      if (version && version->launcher == launcher) return {path, *version};
      others +=
          fmt::format("\n  {} --version: {}", path,
                      version ? fmt::format("{} {}", name_of(version->launcher), version->text)
                              : printable(last_line(printed)));
    }
  }
  if (others.empty()) {
    fail(ErrorCode::remote, "--launcher {}: {} was not found on PATH; install it (Debian: {})",
         entry.name, entry.programs.front(), entry.package);
  }
  fail(ErrorCode::remote,
       "--launcher {}: no program on PATH identifies itself as {}'s:{}\n  Put the right one first "
       "on PATH (Debian: {}), or pass --launcher ssh.",
       entry.name, entry.name, others, entry.package);
}

void check_version(const Entry& entry, const FoundProgram& found) {
  const TaskLauncherVersion& version = found.version;
  if (std::pair(version.major, version.minor) >= entry.oldest) return;
  fail(ErrorCode::remote,
       "{} {} is too old for --launcher {}: install {}.{} or newer, or use --launcher ssh",
       found.path, version.text, entry.name, entry.oldest.first, entry.oldest.second);
}

/// mpirun refuses two --bind-to options: the user's replaces ours.
void give_way(Words& argv, const Words& users) {
  constexpr std::string_view option = "--bind-to";
  const bool typed = std::ranges::any_of(users, [&](const std::string& word) {
    return word == option || word.starts_with(std::string(option) + "=");
  });
  const auto ours = std::ranges::find(argv, option);
  if (typed && ours != argv.end()) argv.erase(ours, ours + 2);
}

}  // namespace

std::string_view name_of(TaskLauncher launcher) {
  return entry_of(launcher).name;
}

std::vector<std::string> program_names(TaskLauncher launcher) {
  std::vector<std::string> names;
  for (const char* const name : entry_of(launcher).programs) {
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

std::optional<TaskLauncher> task_launcher_named(std::string_view name) {
  for (const TaskLauncher launcher : all_task_launchers) {
    if (entry_of(launcher).name == name) return launcher;
  }
  return std::nullopt;
}

std::optional<TaskLauncherVersion> task_launcher_version(std::string_view printed) {
  for (const TaskLauncher launcher : all_task_launchers) {
    for (const std::string_view banner : entry_of(launcher).banners) {
      const std::size_t at = banner.empty() ? printed.npos : printed.find(banner);
      if (at == printed.npos) continue;
      auto version = first_version(printed.substr(at + banner.size()));
      if (!version) continue;
      version->launcher = launcher;
      return version;
    }
  }
  return std::nullopt;
}

TaskCommand make_task_command(const Resources& resources, const LaunchOptions& options) {
  const Entry& entry = entry_of(*resources.task_launcher);
  const FoundProgram found = find_program(*resources.task_launcher);
  check_version(entry, found);
  Told told = entry.tell({found.path, resources.plan, options.oversubscribe});
  Words& argv = told.words;
  give_way(argv, options.launcher_args);
  argv.insert(argv.end(), options.launcher_args.begin(), options.launcher_args.end());
  const Words agent{own_path(), "agent", std::string(connecting_agent), entry.rank_variable};
  argv.insert(argv.end(), agent.begin(), agent.end());
  const bool elsewhere = std::ranges::find(resources.remote, true) != resources.remote.end();
  return {.argv = std::move(argv),
          .host_list = std::move(told.host_list),
          .here_only = !elsewhere,
          .ports = options.port_range};
}

}  // namespace dstrain::launcher
