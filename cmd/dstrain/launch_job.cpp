#include "cmd/dstrain/launch_job.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include <fmt/ranges.h>

#include "launcher/agent/rank_log.h"
#include "launcher/plan/allocation.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::HostTask;
using launcher::JobIdentity;
using launcher::LaunchJob;
using launcher::LaunchOptions;
using launcher::Resources;

constexpr double connect_seconds_max = 30;  // for a host to answer
constexpr double looks_per_hang = 4;
constexpr std::size_t output_windows = 16U << 20;  // of all agents together
constexpr std::size_t output_window_min = 64U << 10;
constexpr std::size_t output_window_max = 1U << 20;

/// The parts of the job that all hosts share.
launcher::JobSpec common_spec(const LaunchOptions& options,
                              const launcher::Command& command,
                              const Resources& resources,
                              const JobIdentity& identity) {
  launcher::JobSpec spec;
  std::error_code error;
  spec.working_directory = std::filesystem::current_path(error).string();
  if (error)
    fail(ErrorCode::usage, "the working directory: {}; change to another directory",
         error.message());
  spec.command = command;
  spec.venv_script = options.venv_script;
  spec.env = launcher::job_environment(options, resources.plan, identity);
  launcher::set_env(spec.env, env::launcher_version, DSTRAIN_VERSION);
  spec.use_gpus = options.device == "cuda" || (options.device != "cpu" && !command.daemon);
  spec.tasks_have_gpus = resources.tasks_have_gpus();
  spec.oversubscribe = options.oversubscribe;
  spec.bind_cores = options.bind_cores;
  spec.core_list = options.core_list;
  const std::size_t agents =
      resources.task_launcher ? resources.plan.ranks().size() : resources.plan.hosts().size();
  spec.output_window_bytes = static_cast<std::uint32_t>(
      std::clamp(output_windows / agents, output_window_min, output_window_max));
  return spec;
}

/// Each rank's agent is a task of srun or mpirun, which the relay reaches wherever it runs.
std::vector<HostTask> one_per_rank(const std::vector<HostTask>& hosts) {
  std::vector<HostTask> tasks;
  for (const HostTask& host : hosts) {
    for (std::size_t i = 0; i < host.spec.ranks.size(); ++i) {
      HostTask& task = tasks.emplace_back(host);
      task.remote = true;
      task.spec.ranks = {host.spec.ranks[i]};
      if (!host.spec.log_files.empty()) task.spec.log_files = {host.spec.log_files[i]};
    }
  }
  return tasks;
}

/// The hosts whose ranks this launcher starts, each with its share of `common`.
std::vector<HostTask> make_tasks(const LaunchOptions& options,
                                 const Resources& resources,
                                 const launcher::JobSpec& common) {
  const launcher::HostPlan& plan = resources.plan;
  std::vector<HostTask> tasks;
  for (std::size_t node = 0; node < plan.hosts().size(); ++node) {
    tasks.push_back({plan.hosts()[node].host, resources.remote[node], common});
    tasks.back().spec.slots = plan.hosts()[node].slots;
  }
  const std::string stamp = time_stamp();
  for (launcher::RankSpec& rank : launcher::rank_environments(plan)) {
    const auto node =
        static_cast<std::size_t>(plan.ranks()[static_cast<std::size_t>(rank.rank)].node_rank);
    launcher::JobSpec& spec = tasks[node].spec;
    if (!options.each_rank_log_directory.empty()) {
      spec.log_files.push_back(
          launcher::rank_log_name(options.each_rank_log_directory, stamp, rank.rank));
    }
    spec.ranks.push_back(std::move(rank));
  }
  if (resources.task_launcher) return one_per_rank(tasks);
  if (!resources.node_rank) return tasks;
  return {std::move(tasks[static_cast<std::size_t>(*resources.node_rank)])};
}

/// The number of ranks and the options that it comes from, because each launcher got its own
/// options.
std::string world_claim(const LaunchOptions& options, const Resources& resources) {
  std::vector<std::string> told;
  if (const auto file = launcher::hostfile_path(options)) {
    told.push_back("hostfile " + file->string());
  }
  if (options.num_nodes) told.push_back(fmt::format("--num_nodes {}", *options.num_nodes));
  if (options.num_gpus) told.push_back(fmt::format("--num_gpus {}", *options.num_gpus));
  if (!options.include.empty()) told.push_back("--include " + options.include);
  if (!options.exclude.empty()) told.push_back("--exclude " + options.exclude);
  return fmt::format("node {}'s launcher says {} ranks on {} nodes ({})", *resources.node_rank,
                     resources.plan.world_size(), resources.plan.hosts().size(),
                     fmt::join(told, ", "));
}

/// --no_ssh: each launcher must find the same rendezvous by itself.
void rendezvous_without_ssh(const LaunchOptions& options,
                            const Resources& resources,
                            LaunchJob& job) {
  const std::vector<launcher::HostSlots>& hosts = resources.plan.hosts();
  if (job.master_addr.empty() && hosts.size() > 1) {
    if (!options.hostfile) {
      fail(ErrorCode::usage,
           "--no_ssh on {} nodes: --master_addr is missing; pass the first node's address, the "
           "same on every node",
           hosts.size());
    }
    job.master_addr = hosts.front().host;
  }
  if (hosts.size() > 1) {
    job.master_port.rule =
        options.master_port ? launcher::PortRule::typed_to_all : launcher::PortRule::default_of_all;
  }
  launcher::set_env(job.hosts.front().spec.env, env::world_claim, world_claim(options, resources));
}

/// Only our own programs publish progress that can be watched.
void watch_hangs(const launcher::Command& command, LaunchJob& job) {
  job.hang_seconds = launcher::read_hang_seconds();
  if (!command.daemon) return;
  const double period = std::clamp(job.hang_seconds / looks_per_hang, 0.05, 1.0);
  for (HostTask& task : job.hosts) {
    task.spec.look_milliseconds = static_cast<std::uint32_t>(period * 1000);
  }
}

}  // namespace

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &local);
  return text.data();
}

/// Each launcher of a --no_ssh job would make its own token, so the user sets one for all.
JobIdentity make_identity(const Resources& resources) {
  const bool shared = resources.node_rank && resources.plan.hosts().size() > 1;
  return {fmt::format("{}-{}", time_stamp(), launcher::random_hex(3)),
          shared ? "" : launcher::random_hex(32)};
}

LaunchJob make_launch_job(const LaunchOptions& options,
                          const launcher::Command& command,
                          const Resources& resources,
                          const JobIdentity& identity,
                          Speaker speaker) {
  LaunchJob job;
  job.id = identity.id;
  job.version = DSTRAIN_VERSION;
  job.world_size = resources.plan.world_size();
  job.hosts = make_tasks(options, resources, common_spec(options, command, resources, identity));
  job.hosts.front().spec.reports_progress = true;
  job.supervision.first_rank = job.hosts.front().spec.ranks.front().rank;
  job.supervision.ranks = 0;
  for (const HostTask& task : job.hosts) {
    job.supervision.ranks += static_cast<int>(task.spec.ranks.size());
  }
  if (options.grace_seconds) {
    job.supervision.crash_grace_seconds = *options.grace_seconds;
    job.supervision.stop_grace_seconds = *options.grace_seconds;
  }
  job.master_addr = options.master_addr;
  const PortRange ports = options.port_range.value_or(PortRange{launcher::default_master_port, 0});
  job.master_port = {
      .port = options.master_port.value_or(ports.first),
      .rule = options.master_port ? launcher::PortRule::typed : launcher::PortRule::first_free,
      .last = ports.last};
  if (resources.node_rank) rendezvous_without_ssh(options, resources, job);
  const double limit = options.timeout_seconds.value_or(600);
  job.connect_seconds = options.copy_binary ? limit : std::min(connect_seconds_max, limit);
  if (resources.launcher() == "ssh") {
    // A connection must report its own error before it is given up.
    const double connect = std::min(connect_seconds_max, limit) * 2 / 3;
    job.open = launcher::choose_remote_link(options, {job.id, job.version, connect});
  }
  if (resources.task_launcher) {
    job.task_command = launcher::make_task_command(resources, options);
    job.supervision.failure_ends_agents = true;
  }
  job.end_time = launcher::allocation_end();
  job.silence_seconds = launcher::read_silence_seconds();
  if (job.open) {
    job.supervision.kill_grace_seconds =
        std::max(job.supervision.kill_grace_seconds, job.silence_seconds + 1);
  }
  watch_hangs(command, job);
  job.log_level = options.log_level;
  job.refuses_gpus = command.daemon && options.device != "cpu" && options.device != "cuda";
  job.bare_output = speaker == Speaker::rank_0;
  return job;
}

}  // namespace dstrain::cmd
