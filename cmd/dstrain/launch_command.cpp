#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/launch_job.h"
#include "cmd/dstrain/preflight.h"
#include "cmd/dstrain/restarts.h"
#include "launcher/agent/rank_log.h"
#include "launcher/job/pid_file.h"
#include "launcher/plan/command.h"
#include "launcher/plan/dry_run.h"
#include "launcher/plan/machine.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/starter.h"
#include "runtime/base/token_file.h"
#include "runtime/base/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::LaunchOptions;

launcher::Command resolve_command(const launcher::CommandLine& line, const CommandInfo* daemon) {
  if (daemon != nullptr) return launcher::resolve_daemon(line.command);
  std::vector<std::string_view> names;
  for (const CommandInfo& command : all_commands()) {
    if (!command.summary.empty()) names.push_back(command.name);
  }
  return launcher::resolve_program(line.options, line.command, names);
}

/// Launchers that start one job together know no common secret unless the user gives one, or srun
/// has started them: then the first node's leaves one in a file, to be kept while the job runs.
std::optional<TokenFile> share_token(const LaunchOptions& options,
                                     const launcher::Resources& resources) {
  if (!resources.node_rank || resources.plan.hosts().size() == 1) return std::nullopt;
  if (std::getenv(env::token) != nullptr || options.dry_run) return std::nullopt;
  const std::optional<StartedTask> task = find_started_task();
  if (!task || task->kind != StarterKind::slurm || task->size.value <= 1) return std::nullopt;
  return *resources.node_rank == 0
             ? TokenFile::create(task->job)
             : TokenFile::wait_for(task->job, options.timeout_seconds.value_or(600));
}

/// Whether what the command reads and writes can be looked at from here: not from a machine that
/// has no part in the job, nor from each of several launchers.
bool files_are_here(const launcher::Resources& resources) {
  if (resources.node_rank) return *resources.node_rank == 0;
  const std::vector<bool>& remote = resources.remote;
  return std::find(remote.begin(), remote.end(), false) != remote.end();
}

int ranks_here(const launcher::Resources& resources) {
  const std::vector<launcher::HostSlots>& hosts = resources.plan.hosts();
  std::size_t ranks = 0;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const bool here = resources.node_rank ? static_cast<std::size_t>(*resources.node_rank) == host
                                          : !resources.remote[host];
    if (here) ranks += hosts[host].slots.size();
  }
  return static_cast<int>(ranks);
}

/// Where the ranks would meet, as far as that is known before any host is reached.
std::string expected_address(const launcher::LaunchJob& job, std::size_t hosts) {
  if (!job.master_addr.empty()) return job.master_addr;
  if (hosts == 1) return "127.0.0.1";
  return job.hosts.front().remote ? job.hosts.front().host : launcher::this_machine().host_name;
}

std::string describe(const launcher::LaunchJob& job, const launcher::Resources& resources) {
  launcher::DryRun run{resources,
                       expected_address(job, resources.plan.hosts().size()),
                       job.master_port.port,
                       {},
                       job.task_command ? &*job.task_command : nullptr};
  for (const launcher::HostTask& task : job.hosts) run.specs.push_back(task.spec);
  return launcher::dry_run_json(run);
}

/// What a command of ours is found to be before anything starts.
struct CheckedCommand {
  bool files_checked = false;
  std::optional<config::TrainOptions> training;
};

/// Throws what is wrong with the command, as far as that can be seen from here.
CheckedCommand check_command_here(const std::vector<std::string>& command,
                                  const LaunchOptions& options,
                                  const launcher::Resources& resources) {
  CheckedCommand checked{.files_checked = files_are_here(resources), .training = {}};
  const TrainPlace place{.world_size = resources.plan.world_size(),
                         .device_memory = options.device_memory_bytes,
                         .ranks_here = ranks_here(resources),
                         .starts = !options.dry_run};
  try {
    checked.training = read_train_options(command);
    if (!checked.files_checked) return checked;
    if (checked.training) {
      check_training(*checked.training, place);
    } else {
      check_command(command, place);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) refuse_launch_options(command);
    throw;
  }
  return checked;
}

/// Where restarts look for checkpoints to go on from.
std::filesystem::path restart_directory(const CheckedCommand& checked) {
  return checked.training ? checked.training->output_dir.value : "";
}

/// What the ranks of a command of ours learn from the launcher besides their place.
void inform_ranks(launcher::LaunchJob& job,
                  const CheckedCommand& checked,
                  const std::optional<TokenFile>& token) {
  if (checked.training && !checked.training->output_dir.value.empty()) {
    const std::filesystem::path output = checked.training->output_dir.value;
    job.output_directory = std::filesystem::absolute(output).lexically_normal().string();
  }
  for (launcher::HostTask& task : job.hosts) {
    launcher::set_env(task.spec.env, env::checked, checked.files_checked ? "1" : "0");
    if (token) launcher::set_env(task.spec.env, env::token, token->token());
  }
}

void make_log_directories(const launcher::LaunchJob& job, const LaunchOptions& options) {
  for (const launcher::HostTask& task : job.hosts) {
    if (task.remote || task.spec.log_files.empty()) continue;
    launcher::make_log_directory(options.each_rank_log_directory);
  }
}

}  // namespace

int launch_command(const launcher::CommandLine& line, const CommandInfo* daemon) {
  LaunchOptions options = line.options;
  if (daemon != nullptr && print_help(line.command)) return status::done;
  launcher::join_step(options);
  if (!options.no_ssh) check_started_alone();
  const launcher::Resources resources = launcher::resolve_resources(
      options, launcher::this_machine(),
      {launcher::find_hostfile(options), launcher::this_allocation()},
      daemon != nullptr ? launcher::RankDevice::cpu_only : launcher::RankDevice::any);
  for (const std::string& warning : resources.warnings) log_warning(warning);
  const CheckedCommand checked =
      daemon != nullptr ? check_command_here(line.command, options, resources) : CheckedCommand{};
  // Only rank 0 prints what was measured, as one table or one JSON object.
  const bool measures = daemon != nullptr && daemon->name == "bench";
  launcher::LaunchJob job = make_launch_job(options, resolve_command(line, daemon), resources,
                                            measures ? Speaker::rank_0 : Speaker::every_rank);
  job.program = line.command.front();
  // A program that is none of ours meets by means of its own.
  const std::optional<TokenFile> token =
      daemon != nullptr ? share_token(options, resources) : std::nullopt;
  inform_ranks(job, checked, token);
  if (options.dry_run) {
    fmt::print("{}\n", describe(job, resources));
    return status::done;
  }
  make_log_directories(job, options);
  std::optional<launcher::PidFile> pid_file;
  if (options.save_pid) pid_file.emplace();
  return run_with_restarts(std::move(job), {.fruitless_max = options.max_restarts,
                                            .output_directory = restart_directory(checked)});
}

}  // namespace dstrain::cmd
