#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cmd/dstrain/commands.h"
#include "launcher/plan/option_checks.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/base/units.h"
#include "runtime/config/elasticity.h"
#include "runtime/config/read_elasticity.h"
#include "runtime/config/resolve.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/memory_setup.h"
#include "runtime/session/model_loading.h"
#include "runtime/session/offload_disks.h"
#include "runtime/session/run_data.h"

namespace dstrain::cmd {
namespace {

constexpr std::string_view config_usage =
    "dstrain config check FILE [--num_gpus N] [--device D] [--host_memory SIZE] [training "
    "options]\n"
    "    Reports every problem of a DeepSpeed configuration at once; exit status 2 if there is "
    "one.\n"
    "    The batch sizes must fit N ranks with --num_gpus, else some number of ranks.\n"
    "    With options that name a model (--model_name_or_path, --config_name), also prints the\n"
    "    memory of a rank, for one rank unless --num_gpus is given, and warns if all ranks need\n"
    "    more than this machine has, or than --host_memory. --device: plan for auto (the device\n"
    "    used here), cpu or cuda, which need not exist here.\n"
    "    For the section deepspeed: of a file of options, pass --config OPTIONS in place of FILE.\n"
    "dstrain config show FILE [--num_gpus N] [training options]\n"
    "    Prints the values that the configuration and the options result in, and the source of\n"
    "    each: the file, a flag, a default, or derived from others. For one rank unless "
    "--num_gpus\n"
    "    is given; \"auto\" sizes are those of the model of --model_name_or_path or "
    "--config_name.\n"
    "dstrain config elastic FILE [--num_gpus N]\n"
    "    Prints the result of the section \"elasticity\": the global batch and the numbers of "
    "ranks\n"
    "    that can share it; with --num_gpus also the micro batch on that many GPUs.\n";

struct ConfigRequest {
  std::string action;
  std::string file;
  std::optional<std::int64_t> num_gpus;
  std::optional<std::string> device;
  std::optional<Bytes> host_memory;  ///< of all ranks together
  std::vector<std::string> flags;    ///< the training options
  bool by_options = false;           ///< the configuration is the section of --config in `flags`
};

std::int64_t rank_count(const std::string& text) {
  constexpr std::size_t most_digits = 6;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (!text.empty() && digits && text.size() <= most_digits && std::stoll(text) > 0) {
    return std::stoll(text);
  }
  fail(ErrorCode::usage, "--num_gpus: expected a number of ranks, got \"{}\"", text);
}

ConfigRequest parse_config_request(std::span<const std::string> arguments) {
  ConfigRequest request;
  request.action = arguments.empty() ? "" : arguments.front();
  constexpr std::array<std::string_view, 3> actions{"check", "show", "elastic"};
  if (std::ranges::find(actions, request.action) == actions.end()) {
    const std::string likely = suggest(request.action, actions);
    fail(ErrorCode::usage, "config {}: no such action; {}\n{}", request.action,
         likely.empty() ? "use check, show or elastic" : fmt::format("did you mean {}?", likely),
         config_usage);
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string name = argument.substr(0, argument.find('='));
    const auto value = [&] {
      const bool inside = name.size() < argument.size();
      const bool follows = !inside && i + 1 < arguments.size();
      return inside ? argument.substr(name.size() + 1) : follows ? arguments[++i] : "";
    };
    if (name == "--num_gpus" || name == "--num-gpus") {
      request.num_gpus = rank_count(value());
    } else if (name == "--device") {
      request.device = value();
    } else if (name == "--host_memory" || name == "--host-memory") {
      request.host_memory = launcher::parse_budget("--host_memory", value());
    } else if (request.file.empty() && !argument.starts_with("-") && request.flags.empty()) {
      request.file = argument;
    } else {
      request.flags.push_back(argument);
    }
  }
  const std::string file = config::ExpandedArguments(request.flags).places().file();
  request.by_options = request.file.empty() && !file.empty() && request.action != "elastic";
  if (request.by_options) request.file = file;
  if (request.file.empty()) fail(ErrorCode::usage, "config {}: FILE is missing", request.action);
  if (request.action == "elastic" && !request.flags.empty()) {
    fail(ErrorCode::usage,
         "config elastic: {}: does not belong here; pass only FILE and --num_gpus N",
         request.flags.front());
  }
  if (request.action != "check" && (request.device || request.host_memory)) {
    fail(ErrorCode::usage, "config {}: {}: only config check plans memory; leave it out",
         request.action, request.device ? "--device" : "--host_memory");
  }
  return request;
}

/// Resolves the options with the model, if they name one.
config::Resolved resolve(const config::TrainOptions& options,
                         const config::DsConfig& config,
                         config::Context context) {
  config::Resolved resolved = config::resolve_config(options, config, context);
  if (!session::names_model(resolved.settings.model)) return resolved;
  context.hidden = session::model_config(resolved.settings.model)->hidden();
  return config::resolve_config(options, config, context);
}

/// The memory of a rank of a run.
std::string describe_memory(config::TrainSettings& settings,
                            std::int64_t world,
                            DeviceKind device,
                            Bytes host_memory) {
  const model::Model model = session::model_config(settings.model)
                                 ->make({settings.dtype, settings.model.in_splits, device});
  session::settle_lengths(settings.data, model);
  const auto ranks = static_cast<int>(world);
  const session::MemorySetup memory = session::set_up_memory(settings, model, ranks);
  // The ranks may run on other machines.
  if (const auto exceeded = session::exceeded_memory(memory.plan, ranks, host_memory)) {
    settings.warnings.push_back("dstrain train would refuse this run here: " + exceeded->reason);
  }
  return fmt::format("on {}, {}: {}\n", name_of(device), counted(world, "rank"),
                     zero::describe(memory.plan, memory.formula));
}

void check(const ConfigRequest& request, const config::DsConfig& config) {
  const DeviceKind device = resolve_device(read_device_choice(request.device));
  config::TrainOptions options = config::read_train_flags(request.flags);
  const bool plans = options.config_name.typed() || options.model_name_or_path.typed();
  if (!plans && !request.flags.empty() && !request.by_options) {
    fail(ErrorCode::usage,
         "config check: {}: training options need one that names a model; add --model_name_or_path "
         "or --config_name",
         request.flags.front());
  }
  if (!plans) options.gradient_checkpointing.value = true;  // a run may say so; parts need it
  const std::int64_t world = request.num_gpus.value_or(plans ? 1 : 0);
  config::TrainSettings settings = resolve(options, config, {.world_size = world}).settings;
  std::string memory;
  if (plans) {
    memory =
        describe_memory(settings, world, device, request.host_memory.value_or(read_host_memory()));
  } else if (request.device || request.host_memory) {
    memory = fmt::format(
        "on {}: to see the memory of a rank, pass --model_name_or_path or --config_name\n",
        name_of(device));
  }
  for (const std::string& line : settings.warnings) fmt::print("warning: {}\n", line);
  // The ranks may run on other machines.
  for (const std::string& line : session::unusable_disks(settings.zero))
    fmt::print("warning: {}\n", line);
  fmt::print("{}: ok\n{}", request.file, memory);
}

void show(const ConfigRequest& request, const config::DsConfig& config) {
  const config::TrainOptions options = config::read_train_flags(request.flags);
  const config::Context context{.world_size = request.num_gpus.value_or(1)};
  fmt::print("{}\n", config::report_json(resolve(options, config, context)));
}

template <class T>
T value_or_fail(const std::string& file, Result<T> result) {
  if (!result.ok()) fail(ErrorCode::config, "{}: {}", file, result.error());
  return std::move(result.value());
}

/// Prints the output of DeepSpeed's ds_elastic.
void show_elasticity(const ConfigRequest& request, const config::DsConfig& config) {
  config::Problems problems = config.problems();
  problems.throw_if_any();
  if (!config::elasticity_enabled(config)) {
    fail(ErrorCode::config, "{}: elasticity.enabled is not true; set it", request.file);
  }
  const auto elasticity = config::read_elasticity({}, config, problems);
  problems.throw_if_any();
  for (const std::string& line : problems.warnings()) fmt::print(stderr, "warning: {}\n", line);
  const std::int64_t gpus = request.num_gpus.value_or(0);
  const std::int64_t ranks = gpus / elasticity->model_parallel_size;
  if (gpus % elasticity->model_parallel_size != 0) {
    fail(ErrorCode::config,
         "--num_gpus {}: must be a multiple of elasticity.model_parallel_size {}", gpus,
         elasticity->model_parallel_size);
  }
  const config::ElasticBatch batch =
      value_or_fail(request.file, ranks > 0 ? config::elastic_batch(*elasticity, ranks)
                                            : config::elastic_batch(*elasticity));
  fmt::print("final_batch_size: {}\nvalid_gpus: [{}]\n", batch.train_batch_size,
             fmt::join(batch.valid_counts, ", "));
  if (ranks == 0) return;
  const config::Batch share =
      value_or_fail(request.file, config::share_elastic_batch(*elasticity, ranks));
  fmt::print("micro_batch_size: {}\n", share.micro);
}

}  // namespace

int config_command(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h")
      return fmt::print("{}", config_usage), status::done;
  }
  try {
    const ConfigRequest request = parse_config_request(arguments);
    const config::DsConfig config =
        request.by_options ? config::DsConfig::of(config::read_train_flags(request.flags))
                           : config::DsConfig::load(request.file);
    if (request.action == "check") check(request, config);
    if (request.action == "show") show(request, config);
    if (request.action == "elastic") show_elasticity(request, config);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return exit_status(error.code());
  }
  return status::done;
}

}  // namespace dstrain::cmd
