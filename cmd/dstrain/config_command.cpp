#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cmd/dstrain/commands.h"
#include "cmd/model_loading.h"
#include "cmd/offload_disks.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"
#include "runtime/config/resolve.h"
#include "runtime/config/suggest.h"

namespace dstrain::cmd {
namespace {

constexpr std::string_view config_usage =
    "dstrain config check FILE [--num_gpus N]\n"
    "    Reports every problem of a DeepSpeed configuration at once; status 2 when there are any.\n"
    "    --num_gpus: the batch sizes must fit N ranks, not just some number of them.\n"
    "dstrain config show FILE [--num_gpus N] [training options]\n"
    "    Prints what the configuration and the options amount to, and where each value comes\n"
    "    from: the file, a flag, a default, or derived from others. One rank unless --num_gpus;\n"
    "    \"auto\" sizes are those of the model that --model_name_or_path or --config_name names.\n";

struct ConfigRequest {
  std::string action;
  std::string file;
  std::optional<std::int64_t> num_gpus;
  std::vector<std::string> flags;  ///< the training options
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
  if (request.action != "check" && request.action != "show") {
    constexpr std::string_view actions[] = {"check", "show"};
    const std::string likely = config::suggest(request.action, actions);
    fail(ErrorCode::usage, "config {}: no such action; {}\n{}", request.action,
         likely.empty() ? "there are check and show" : fmt::format("did you mean {}?", likely),
         config_usage);
  }
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string name = argument.substr(0, argument.find('='));
    if (name == "--num_gpus" || name == "--num-gpus") {
      const bool inside = name.size() < argument.size();
      const bool follows = !inside && i + 1 < arguments.size();
      request.num_gpus = rank_count(inside    ? argument.substr(name.size() + 1)
                                    : follows ? arguments[++i]
                                              : "");
    } else if (request.file.empty() && !argument.starts_with("-") && request.flags.empty()) {
      request.file = argument;
    } else {
      request.flags.push_back(argument);
    }
  }
  if (request.file.empty()) fail(ErrorCode::usage, "config {}: needs a FILE", request.action);
  if (request.action == "check" && !request.flags.empty()) {
    fail(ErrorCode::usage, "config check: {}: only --num_gpus N goes with a FILE",
         request.flags.front());
  }
  return request;
}

void check(const ConfigRequest& request, const config::DsConfig& config) {
  const config::Context context{.world_size = request.num_gpus.value_or(0)};
  config::TrainOptions options;
  options.gradient_checkpointing.value = true;  // a run may say so, and parts of a file need it
  const config::TrainSettings settings = config::resolve_config(options, config, context).settings;
  for (const std::string& line : settings.warnings) fmt::print("warning: {}\n", line);
  // The ranks may run on other machines.
  for (const std::string& line : unusable_disks(settings.zero)) fmt::print("warning: {}\n", line);
  fmt::print("{}: ok\n", request.file);
}

void show(const ConfigRequest& request, const config::DsConfig& config) {
  const config::TrainOptions options = config::read_train_flags(request.flags);
  config::Context context{.world_size = request.num_gpus.value_or(1)};
  config::Resolved resolved = config::resolve_config(options, config, context);
  if (names_model(resolved.settings.model)) {
    context.hidden = model_config(resolved.settings.model).n_embd;
    resolved = config::resolve_config(options, config, context);
  }
  fmt::print("{}\n", config::report_json(resolved));
}

}  // namespace

int config_command(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h")
      return fmt::print("{}", config_usage), status::done;
  }
  try {
    const ConfigRequest request = parse_config_request(arguments);
    const config::DsConfig config = config::DsConfig::load(request.file);
    request.action == "check" ? check(request, config) : show(request, config);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return exit_status(error.code());
  }
  return status::done;
}

}  // namespace dstrain::cmd
