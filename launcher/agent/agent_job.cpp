#include "launcher/agent/agent_job.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <fmt/ranges.h>

#include "launcher/agent/rank_log.h"
#include "launcher/plan/machine.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr const char* source_and_become = "script=$1; shift; . \"$script\" && exec \"$@\"";

/// The ranks' GPUs, when slots are GPUs here.
void assign_gpus(JobSpec& job, const Machine& machine) {
  if (!job.use_gpus || usable_gpus(machine) == 0) return;
  if (!machine.visible_gpus && !job.oversubscribe) check_gpu_slots(job.slots, machine.gpus);
  const std::string devices = fmt::format("{}", fmt::join(job.slots, ","));
  for (RankSpec& rank : job.ranks) rank.env.push_back({"CUDA_VISIBLE_DEVICES", devices});
}

/// The shell sources the script, its first argument, and becomes what follows.
void source_first(JobSpec& job) {
  if (access(job.venv_script.c_str(), R_OK) != 0) {
    fail(ErrorCode::remote, "--venv_script {}: cannot be read there", job.venv_script);
  }
  Command& command = job.command;
  command.argv.front() = command.program;
  command.program = find_on_path("bash");  // what such scripts are mostly written for
  if (command.program.empty()) command.program = find_on_path("sh");
  const std::vector<std::string> shell{command.program, "-c", source_and_become, command.program,
                                       job.venv_script};
  command.argv.insert(command.argv.begin(), shell.begin(), shell.end());
  if (command.local_rank_position) *command.local_rank_position += shell.size();
}

}  // namespace

std::vector<CoreBinding> bind_ranks(const JobSpec& job) {
  if (!job.bind_cores) return {};
  const bool in_job = std::ranges::find(job.env, "KMP_AFFINITY", &EnvVar::name) != job.env.end();
  if (in_job || std::getenv("KMP_AFFINITY") != nullptr) {
    fail(ErrorCode::usage, "--bind_cores_to_rank: KMP_AFFINITY binds threads too; unset it");
  }
  return bind_cores(job.core_list, static_cast<int>(job.ranks.size()));
}

std::string fit_job_to_node(JobSpec& job) {
  const Machine machine = this_machine();
  if (job.command.daemon) {
    job.command.program = find_daemon();
    job.command.argv.front() = job.command.program;
  }
  assign_gpus(job, machine);
  if (!job.log_files.empty()) {
    make_log_directory(std::filesystem::path(job.log_files.front()).parent_path());
  }
  if (!job.venv_script.empty()) source_first(job);
  const auto ranks = static_cast<int>(job.ranks.size());
  const bool gpus = job.use_gpus && usable_gpus(machine) > 0;
  if (gpus || job.oversubscribe || ranks <= machine.cores) return "";
  return fmt::format("{} CPU ranks share {} cores; --oversubscribe says that this is meant", ranks,
                     machine.cores);
}

}  // namespace dstrain::launcher
