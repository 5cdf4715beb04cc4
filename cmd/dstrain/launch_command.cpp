#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/preflight.h"
#include "launcher/command.h"
#include "launcher/dry_run.h"
#include "launcher/job_env.h"
#include "launcher/local_launch.h"
#include "launcher/machine.h"
#include "launcher/pid_file.h"
#include "launcher/port.h"
#include "launcher/rank_log.h"
#include "launcher/resources.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::LaunchOptions;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &local);
  return text.data();
}

/// auto means slurm inside an allocation: one of several nodes is not silently taken for all.
void check_allocation(const LaunchOptions& options) {
  const char* const nodes = std::getenv("SLURM_JOB_NUM_NODES");
  if (options.launcher != "auto" || nodes == nullptr || std::atoi(nodes) <= 1) return;
  fail(ErrorCode::usage,
       "this is a slurm allocation of {} nodes, and launching through slurm is not supported yet; "
       "--launcher local uses this node alone",
       nodes);
}

launcher::Command resolve_command(const launcher::CommandLine& line, const CommandInfo* daemon) {
  if (daemon != nullptr) return launcher::resolve_daemon(line.command);
  std::vector<std::string_view> names;
  for (const CommandInfo& command : all_commands()) {
    if (!command.summary.empty()) names.push_back(command.name);
  }
  return launcher::resolve_program(line.options, line.command, names);
}

launcher::JobSpec make_job(const launcher::CommandLine& line,
                           const launcher::Command& command,
                           const launcher::Resources& resources,
                           const launcher::JobIdentity& identity) {
  launcher::JobSpec job;
  job.working_directory = std::filesystem::current_path().string();
  job.command = command;
  job.env = launcher::job_environment(line.options, resources.plan, identity);
  job.ranks = launcher::rank_environments(resources.plan, resources.gpus);
  const std::string& directory = line.options.each_rank_log_directory;
  const std::string stamp = time_stamp();
  for (const launcher::RankSpec& rank : job.ranks) {
    if (directory.empty()) break;
    job.log_files.push_back(launcher::rank_log_name(directory, stamp, rank.rank));
  }
  return job;
}

/// Whose standard output a job's is.
enum class Speaker { every_rank, rank_0 };

launcher::LocalJob local_job(const LaunchOptions& options,
                             const launcher::HostPlan& plan,
                             const launcher::JobIdentity& identity,
                             launcher::JobSpec spec,
                             Speaker speaker) {
  launcher::LocalJob job;
  job.id = identity.id;
  job.host = plan.hosts().front().host;
  job.spec = std::move(spec);
  job.supervision.world_size = plan.world_size();
  if (options.grace_seconds) {
    job.supervision.crash_grace_seconds = *options.grace_seconds;
    job.supervision.stop_grace_seconds = *options.grace_seconds;
  }
  job.log_level = options.log_level;
  job.bare_output = speaker == Speaker::rank_0;
  return job;
}

/// A typed port is taken as it is; else the first free one. Kept reserved while the job lives.
launcher::ReservedPort choose_port(const LaunchOptions& options) {
  return options.master_port ? launcher::reserve_port(*options.master_port)
                             : launcher::reserve_free_port(launcher::default_master_port);
}

}  // namespace

int launch_command(const launcher::CommandLine& line, const CommandInfo* daemon) {
  const LaunchOptions& options = line.options;
  if (daemon != nullptr && print_help(line.command)) return status::done;
  check_allocation(options);
  const launcher::Resources resources = launcher::resolve_resources(
      options, launcher::this_machine(), launcher::find_hostfile(options));
  for (const std::string& warning : resources.warnings) log_warning(warning);
  std::string output_directory;
  if (daemon != nullptr) {
    output_directory =
        check_command(line.command, {resources.plan.world_size(), options.device_memory_bytes});
  }
  const launcher::ReservedPort port = choose_port(options);
  const launcher::JobIdentity identity{
      fmt::format("{}-{}", time_stamp(), launcher::random_hex(3)), launcher::random_hex(32),
      options.master_addr.empty() ? "127.0.0.1" : options.master_addr, port.port};
  launcher::JobSpec spec = make_job(line, resolve_command(line, daemon), resources, identity);
  if (options.dry_run) {
    fmt::print("{}\n", launcher::dry_run_json(resources.plan, identity, spec));
    return status::done;
  }
  if (!spec.log_files.empty()) launcher::make_log_directory(options.each_rank_log_directory);
  std::optional<launcher::PidFile> pid_file;
  if (options.save_pid) pid_file.emplace();
  const int ranks = resources.plan.world_size();
  log_info(fmt::format("job {}: {} {} on {}, master {}:{}", identity.id, ranks,
                       ranks == 1 ? "rank" : "ranks", resources.plan.hosts().front().host,
                       identity.master_addr, identity.master_port));
  // Only rank 0 prints what was measured, as one table or one JSON object.
  const bool measures = daemon != nullptr && daemon->name == "bench";
  launcher::LocalJob job = local_job(options, resources.plan, identity, std::move(spec),
                                     measures ? Speaker::rank_0 : Speaker::every_rank);
  job.program = line.command.front();
  job.output_directory = output_directory;
  return launcher::run_local_job(job);
}

}  // namespace dstrain::cmd
