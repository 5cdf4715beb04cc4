#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/tool_options.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/model_loading.h"
#include "zero/estimate.h"

namespace dstrain::cmd {
namespace {

struct EstimateOptions {
  zero::EstimateInput sizes;
  config::ModelSettings model;
  int stage = 3;
  bool json = false;
};

void declare_estimate(CLI::App& app, EstimateOptions& options) {
  constexpr std::int64_t params_max = 1'000'000'000'000'000;
  constexpr int machines_max = 1'000'000;
  const CLI::Range count(std::int64_t{1}, params_max);
  const CLI::Range machines(1, machines_max);
  app.add_option("--total_params", options.sizes.total_params, "number of parameters of the model")
      ->check(count);
  app.add_option("--largest_layer_params", options.sizes.largest_layer_params,
                 "number of parameters of its largest layer; required for stage 3")
      ->check(count);
  app.add_option("--model_name_or_path", options.model.directory,
                 "count the parameters of this model");
  app.add_option("--config_name", options.model.config,
                 "count the parameters of this preset or config.json");
  app.add_option("--config_overrides", options.model.overrides,
                 "change its configuration: num_hidden_layers=2,hidden_size=64");
  app.add_option("--num_gpus_per_node", options.sizes.gpus_per_node, "GPUs of each node [1]")
      ->check(machines);
  app.add_option("--num_nodes", options.sizes.nodes, "number of nodes [1]")->check(machines);
  app.add_option("--stage", options.stage, "ZeRO stage 2 or 3 [3]")->check(CLI::IsMember({2, 3}));
  app.add_flag("--json", options.json,
               "print a JSON list of objects, with bytes per node and per GPU");
}

/// The sizes that were typed, or those of the model.
zero::EstimateInput sizes_of(const EstimateOptions& options) {
  const bool typed = options.sizes.total_params > 0 || options.sizes.largest_layer_params > 0;
  const bool named = !options.model.directory.empty() || !options.model.config.empty();
  if (typed == named) {
    fail(ErrorCode::usage,
         "estimate: give either --total_params and --largest_layer_params, or a model by "
         "--model_name_or_path or --config_name");
  }
  if (named) {
    const model::Model model = session::model_config(options.model)->make();
    zero::EstimateInput sizes = zero::sizes_for_estimate(model.parameters());
    sizes.gpus_per_node = options.sizes.gpus_per_node;
    sizes.nodes = options.sizes.nodes;
    return sizes;
  }
  const zero::EstimateInput& sizes = options.sizes;
  if (sizes.total_params == 0) fail(ErrorCode::usage, "estimate: --total_params is missing");
  if (options.stage == 3 && sizes.largest_layer_params == 0) {
    fail(ErrorCode::usage, "estimate: --largest_layer_params is missing; stage 3 needs it");
  }
  if (sizes.largest_layer_params > sizes.total_params) {
    fail(ErrorCode::usage,
         "estimate: --largest_layer_params {}: must not be more than --total_params {}",
         sizes.largest_layer_params, sizes.total_params);
  }
  return sizes;
}

std::string to_json(const std::vector<zero::Estimate>& rows, int stage) {
  const auto device = [](bool offload) {
    return offload ? "cpu" : "none";
  };
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const zero::Estimate& row : rows) {
    nlohmann::ordered_json one;
    if (stage == 3) one["offload_param"] = device(row.offload_param);
    one["offload_optimizer"] = device(row.offload_optimizer);
    if (stage == 3) one["zero_init"] = row.zero_init;
    one["cpu_bytes"] = row.cpu_bytes;
    one["gpu_bytes"] = row.gpu_bytes;
    list.push_back(one);
  }
  return list.dump(2);
}

}  // namespace

int estimate_command(std::span<const std::string> arguments) {
  EstimateOptions options;
  CLI::App app{
      "Estimates the memory of parameters, gradients and optimizer states with DeepSpeed's "
      "formulas.",
      "dstrain estimate"};
  declare_estimate(app, options);
  if (!parse_tool_options(app, arguments)) return status::done;
  const zero::EstimateInput sizes = sizes_of(options);
  if (options.json) {
    fmt::print("{}\n", to_json(zero::estimate(sizes, options.stage), options.stage));
  } else {
    fmt::print("{}", zero::estimate_table(sizes, options.stage));
  }
  return status::done;
}

}  // namespace dstrain::cmd
