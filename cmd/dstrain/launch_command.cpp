#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/elastic_launch.h"
#include "cmd/dstrain/launch_job.h"
#include "cmd/dstrain/preflight.h"
#include "cmd/dstrain/restarts.h"
#include "launcher/agent/rank_log.h"
#include "launcher/job/pid_file.h"
#include "launcher/plan/command.h"
#include "launcher/plan/dry_run.h"
#include "launcher/plan/job_env.h"
#include "launcher/plan/machine.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/config/options_file.h"
#include "runtime/rank/job_token_file.h"
#include "runtime/rank/starter.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::LaunchOptions;

launcher::Command resolve_command(const launcher::CommandLine& line,
                                  const CommandInfo* daemon,
                                  const launcher::HostPlan& plan) {
  if (daemon != nullptr) return launcher::resolve_daemon(line.command);
  std::vector<std::string_view> names;
  for (const CommandInfo& command : all_commands()) {
    if (!command.summary.empty()) names.push_back(command.name);
  }
  std::size_t ranks = 0;
  for (const launcher::HostSlots& host : plan.hosts()) ranks = std::max(ranks, host.slots.size());
  return launcher::resolve_program(line, names, ranks);
}

/// Launchers that start one job together share no secret unless the user sets one, or srun has
/// started them: then the first node's launcher leaves one in a file, which must stay while the job
/// runs.
std::optional<JobTokenFile> share_token(const LaunchOptions& options,
                                        const launcher::Resources& resources) {
  if (!resources.node_rank || resources.plan.hosts().size() == 1) return std::nullopt;
  if (std::getenv(env::token) != nullptr || options.dry_run) return std::nullopt;
  const std::optional<StartedTask> task = find_started_task();
  if (!task || task->kind != StarterKind::slurm || task->size.value <= 1) return std::nullopt;
  return *resources.node_rank == 0
             ? JobTokenFile::create(task->job)
             : JobTokenFile::wait_for(task->job, options.timeout_seconds.value_or(600));
}

/// Whether this launcher can check the command's files: not on a machine without ranks, and only
/// one of several launchers.
bool files_are_here(const launcher::Resources& resources) {
  if (resources.node_rank) return *resources.node_rank == 0;
  const std::vector<bool>& remote = resources.remote;
  return std::find(remote.begin(), remote.end(), false) != remote.end();
}

/// The slots of the ranks on this machine.
std::vector<int> slots_here(const launcher::Resources& resources) {
  const std::vector<launcher::HostSlots>& hosts = resources.plan.hosts();
  std::vector<int> slots;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const bool here = resources.node_rank ? static_cast<std::size_t>(*resources.node_rank) == host
                                          : !resources.remote[host];
    if (here) slots.insert(slots.end(), hosts[host].slots.begin(), hosts[host].slots.end());
  }
  return slots;
}

/// The address of the rendezvous, as far as it is known before any host is reached.
std::string expected_address(const launcher::LaunchJob& job, std::size_t hosts) {
  if (!job.master_addr.empty()) return job.master_addr;
  if (hosts == 1) return "127.0.0.1";
  return job.hosts.front().remote ? job.hosts.front().host : launcher::this_machine().host_name;
}

std::string describe(const NextLaunch& next, const launcher::Resources& resources, bool elastic) {
  const launcher::LaunchJob& job = next.job;
  launcher::DryRun run{resources,
                       expected_address(job, resources.plan.hosts().size()),
                       job.master_port.port,
                       {},
                       job.task_command ? &*job.task_command : nullptr,
                       elastic ? &next.idle : nullptr};
  for (const launcher::HostTask& task : job.hosts) run.specs.push_back(task.spec);
  return launcher::dry_run_json(run);
}

/// Returns the result of `read`. If a usage error comes from a launch option after the command,
/// names that option instead.
template <class Read>
auto read_command(const std::vector<std::string>& command, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) refuse_launch_options(command);
    throw;
  }
}

/// What a command of ours reads before ranks start.
struct OwnCommand {
  std::optional<config::TrainOptions> training{};  ///< of train
  std::string input{};                             ///< stdin, for generate
};

/// Puts the options of a file into the command: ranks need no such file.
OwnCommand read_own_command(std::vector<std::string>& command) {
  OwnCommand own;
  if (command.front() == "train") {
    const std::span<const std::string> words(command);
    const config::ExpandedArguments given(words.subspan(1));
    command = given.words();
    command.insert(command.begin(), "train");
    own.training = config::located(given.places(), [&] {
      return read_command(command, [&] { return config::parse_train_options(given); });
    });
  }
  own.input = read_command(command, [&] { return read_input(command); });
  return own;
}

/// Checks the command as far as possible from here. Returns the lock of the output directory of a
/// training that starts.
std::unique_ptr<OutputLock> check_command_here(const std::vector<std::string>& command,
                                               const std::optional<config::TrainOptions>& training,
                                               const std::string& input,
                                               const TrainPlace& place,
                                               const std::string& job) {
  return read_command(command, [&]() -> std::unique_ptr<OutputLock> {
    if (training) {
      return config::located(training->places,
                             [&] { return check_training(*training, place, job); });
    }
    check_command(command, input, place);
    return nullptr;
  });
}

/// None if the job is not elastic.
std::optional<ElasticLaunch> make_elastic(const launcher::CommandLine& line,
                                          const launcher::Resources& resources,
                                          const std::optional<config::TrainOptions>& training) {
  if (!line.options.elastic) return std::nullopt;
  if (!training) {
    fail(ErrorCode::usage,
         "--elastic_training, --min_elastic_nodes and --max_elastic_nodes: only train can continue "
         "with fewer ranks; leave them out, or pass --max_restarts to restart {}",
         line.command.front());
  }
  return ElasticLaunch(*line.options.elastic, resources, *training);
}

/// Makes the launches of a job, from what they have in common.
struct JobMaker {
  const LaunchOptions& options;
  const launcher::Resources& all;
  launcher::Command command{};
  launcher::JobIdentity identity;
  Speaker speaker = Speaker::every_rank;
  std::string program;
  std::string output_directory{};  ///< of a training, absolute
  std::string input{};             ///< that rank 0 reads from stdin
  bool relays_input = false;       ///< rank 0 reads the launcher's stdin
  std::string option_places{};     ///< for env::option_places; empty: no file of options
  bool files_checked = false;
  std::string token{};  ///< that several launchers share; empty: none, or it is exported
  std::optional<ElasticLaunch> elastic;

  [[nodiscard]] NextLaunch launch_on(const launcher::Resources& resources) const;
  [[nodiscard]] Result<NextLaunch> launch_without(const std::vector<std::string>& absent) const;
};

NextLaunch JobMaker::launch_on(const launcher::Resources& resources) const {
  NextLaunch next{make_launch_job(options, command, resources, identity, speaker), {}};
  next.job.program = program;
  next.job.output_directory = output_directory;
  next.job.elastic = elastic.has_value();
  next.job.relays_input = relays_input;
  if (elastic && !elastic->leads(resources)) next.job.master_addr.clear();
  for (launcher::HostTask& task : next.job.hosts) {
    task.spec.input = input;
    launcher::set_env(task.spec.env, env::checked, files_checked ? "1" : "0");
    if (!token.empty()) launcher::set_env(task.spec.env, env::token, token);
    if (relays_input && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {
      launcher::set_env(task.spec.env, env::terminal, "1");
    }
    if (!option_places.empty()) {
      launcher::set_env(task.spec.env, env::option_places, option_places);
    }
    if (!elastic || !elastic->kept_batch()) continue;
    launcher::set_env(task.spec.env, env::kept_batch,
                      config::encode_kept_batch(*elastic->kept_batch()));
  }
  return next;
}

Result<NextLaunch> JobMaker::launch_without(const std::vector<std::string>& absent) const {
  if (!elastic) return launch_on(all);
  Result<launcher::ElasticPlan> plan = elastic->plan(absent);
  if (!plan.ok()) return Failure{plan.error()};
  NextLaunch next = launch_on(plan.value().resources);
  next.idle = plan.value().without_ranks();
  next.job.notices = elastic->describe_idle(plan.value());
  return next;
}

void make_log_directories(const launcher::LaunchJob& job, const LaunchOptions& options) {
  for (const launcher::HostTask& task : job.hosts) {
    if (task.remote || task.spec.log_files.empty()) continue;
    launcher::make_log_directory(options.each_rank_log_directory);
  }
}

/// Where the ranks of the first launch run. Throws Error{usage} if none can run.
launcher::Resources first_resources(const JobMaker& maker) {
  if (!maker.elastic) return maker.all;
  Result<launcher::ElasticPlan> plan = maker.elastic->plan({});
  if (!plan.ok()) fail(ErrorCode::usage, "an elastic job: {}", plan.error());
  return std::move(plan.value().resources);
}

/// Decides once, for all ranks of our command, what device `auto` means, and sets options.device if
/// it is not the CPU.
DeviceKind settle_device(LaunchOptions& options, const CommandInfo& daemon) {
  DeviceChoice choice = read_device_choice(options.device);
  if (daemon.name == "bench" && choice == DeviceChoice::automatic) choice = DeviceChoice::cpu;
  const DeviceKind kind = resolve_device(choice);
  if (!shares_host_memory(kind)) options.device = name_of(kind);
  return kind;
}

}  // namespace

int launch_command(launcher::CommandLine line, const CommandInfo* daemon) {
  LaunchOptions options = line.options;
  if (daemon != nullptr && print_help(line.command)) return status::done;
  launcher::join_step(options);
  if (!options.no_ssh) check_started_alone();
  if (!options.no_ssh && daemon != nullptr && daemon->name == "train") refuse_numbered_training();
  std::optional<DeviceKind> device;
  if (daemon != nullptr) device = settle_device(options, *daemon);
  const launcher::Resources resources = launcher::resolve_resources(
      options, launcher::this_machine(),
      {launcher::find_hostfile(options), launcher::this_allocation()},
      device && shares_host_memory(*device) ? launcher::RankDevice::cpu_only
                                            : launcher::RankDevice::any);
  std::vector<std::string> warnings = resources.warnings;
  options.env_files = launcher::read_env_files(warnings);
  for (const std::string& warning : warnings) log_warning(warning);
  const bool ours = daemon != nullptr;
  auto [training, input] = ours ? read_own_command(line.command) : OwnCommand();
  JobMaker maker{
      .options = options,
      .all = resources,
      .identity = make_identity(resources),
      .program = line.command.front(),
      .input = std::move(input),
      .relays_input = ours && daemon->name == "chat",
      .option_places = training && !training->places.empty() ? training->places.encode() : "",
      .files_checked = ours && files_are_here(resources),
      .elastic = make_elastic(line, resources, training)};
  const launcher::Resources first = first_resources(maker);
  const std::vector<int> here = slots_here(first);
  std::unique_ptr<OutputLock> output_lock;
  if (device && maker.files_checked) {
    output_lock = check_command_here(
        line.command, training, maker.input,
        {.world_size = first.plan.world_size(),
         .device = *device,
         .device_memory = options.device_memory_bytes,
         .host_memory =
             options.host_memory_bytes > 0 ? options.host_memory_bytes : read_host_memory(),
         .node_ranks = static_cast<int>(here.size()),
         .ranks_here = static_cast<int>(here.size()),
         .first_slot = here.empty() ? 0 : here.front(),
         .starts = !options.dry_run,
         .kept_batch = maker.elastic ? maker.elastic->kept_batch() : std::nullopt},
        maker.identity.id);
  }
  maker.command = resolve_command(line, daemon, first.plan);
  // Only rank 0 prints the results, as one table or one JSON object.
  if (ours && daemon->name != "train") maker.speaker = Speaker::rank_0;
  // Other programs do their own rendezvous.
  const std::optional<JobTokenFile> token = ours ? share_token(options, resources) : std::nullopt;
  if (token) maker.token = token->token();
  if (training && !training->output_dir.value.empty()) {
    const std::filesystem::path output = training->output_dir.value;
    maker.output_directory = std::filesystem::absolute(output).lexically_normal().string();
  }
  const NextLaunch next = maker.launch_without({}).value();
  if (options.dry_run) {
    fmt::print("{}\n", describe(next, first, maker.elastic.has_value()));
    return status::done;
  }
  make_log_directories(next.job, options);
  std::optional<launcher::PidFile> pid_file;
  if (options.save_pid) pid_file.emplace();
  return run_with_restarts(
      [&](const std::vector<std::string>& absent) { return maker.launch_without(absent); },
      {.fruitless_max = options.max_restarts,
       .output_directory = training && config::trains(*training) ? maker.output_directory : "",
       .ignore_data_skip = training && training->ignore_data_skip.value});
}

}  // namespace dstrain::cmd
