#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/inference_plan.h"
#include "cmd/dstrain/plan_report.h"
#include "cmd/dstrain/tool_options.h"
#include "cmd/plan_setup.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

struct PlanOptions {
  std::optional<std::string> device;
  int gpus_per_node = 1;
  int nodes = 1;
  std::string device_memory;
  std::string host_memory;
  std::string nvme = "0";
  bool inference = false;
  bool json = false;
};

void declare_plan(CLI::App& app, PlanOptions& options) {
  constexpr int machines_max = 30'000;
  const CLI::Range machines(1, machines_max);
  app.add_option("--device", options.device,
                 "plan for auto (the device used here), cpu or cuda, which need not exist here");
  app.add_option("--num_gpus", options.gpus_per_node, "ranks of each node [1]")->check(machines);
  app.add_option("--num_nodes", options.nodes, "number of nodes [1]")->check(machines);
  app.add_option("--device_memory", options.device_memory,
                 "device memory of each rank, for example 2GiB")
      ->required();
  app.add_option("--host_memory", options.host_memory,
                 "host memory of each node, for all its ranks")
      ->required();
  app.add_option("--nvme", options.nvme, "NVMe space of each node, for all its ranks [none]");
  app.add_flag("--inference", options.inference,
               "plan for generate and chat: which batch and context fit");
  app.add_flag("--json", options.json, "print a JSON list of objects, fastest first");
  app.allow_extras();
  app.footer(
      "\n"
      "Give the model, the micro batch, the block size and the precision as to `dstrain train`; "
      "its\n"
      "other options are accepted and have no effect. --gradient_checkpointing selects only\n"
      "configurations with it. On CPUs the device's memory is part of the host's: divide it "
      "between the two.\n"
      "With --inference, give the model and, for other precisions than that of its weights, "
      "--bf16\n"
      "or --fp16.\n"
      "For GPUs the first row moves the fewest bytes, because none has been measured.\n"
      "Exit status 1 if nothing fits.");
}

Bytes bytes_of(const char* option, const std::string& text) {
  const Result<Bytes> bytes = parse_bytes(text);
  if (!bytes.ok()) fail(ErrorCode::usage, "plan: {}: {}", option, bytes.error());
  return bytes.value();
}

zero::PlanBudget budget_of(const PlanOptions& options) {
  return {.device = bytes_of("--device_memory", options.device_memory),
          .host = bytes_of("--host_memory", options.host_memory),
          .nvme = bytes_of("--nvme", options.nvme),
          .ranks_per_node = options.gpus_per_node};
}

[[noreturn]] void fail_to_fit(const PlanSetup& setup,
                              const std::vector<zero::PlanRow>& rows,
                              const zero::PlanBudget& budget) {
  const zero::PlanRow& closest = zero::closest_row(rows, budget);
  fail(ErrorCode::out_of_memory,
       "plan: nothing fits on {}. The closest configuration needs {} more{}:\n{}\nUse more memory "
       "or ranks, a smaller micro batch (now {}) or block size (now {}), or "
       "--tiled_linear_in_splits",
       name_of(setup.model().device), zero::describe(zero::plan_miss(closest.memory, budget)),
       closest.choice.checkpointing ? ", with --gradient_checkpointing" : "",
       setup.ds_config(closest.choice), setup.settings().micro_batch_size,
       setup.settings().data.block_size);
}

int plan_inference(const PlanOptions& options,
                   const std::vector<std::string>& words,
                   const zero::PlanBudget& budget,
                   std::span<const MemoryTier> tiers) {
  const InferencePlan plan(config::read_train_flags(words), options.gpus_per_node * options.nodes,
                           resolve_device(read_device_choice(options.device)), tiers);
  const std::vector<InferencePlan::Row> rows = plan.rows(budget);
  fmt::print("{}", options.json ? plan.json(rows) + "\n" : plan.table(rows));
  return status::done;
}

}  // namespace

int plan_command(std::span<const std::string> arguments) {
  PlanOptions options;
  CLI::App app{
      "Lists the ZeRO stages and offloads that fit into the given memory, fastest first, and "
      "prints the configuration of the first.",
      "dstrain plan"};
  declare_plan(app, options);
  if (!parse_tool_options(app, arguments)) return status::done;
  const zero::PlanBudget budget = budget_of(options);
  std::vector<MemoryTier> tiers{MemoryTier::device, MemoryTier::host};
  if (budget.nvme > 0) tiers.push_back(MemoryTier::nvme);
  if (options.inference) return plan_inference(options, app.remaining(), budget, tiers);
  const PlanSetup setup(config::read_train_flags(app.remaining()),
                        options.gpus_per_node * options.nodes,
                        resolve_device(read_device_choice(options.device)));
  const std::vector<zero::PlanRow> rows = setup.rows(tiers);
  const std::vector<zero::PlanRow> fit = zero::rows_that_fit(rows, budget);
  if (fit.empty()) fail_to_fit(setup, rows, budget);
  if (options.json) {
    fmt::print("{}\n", plan_json(setup, fit));
  } else {
    fmt::print("{}", plan_table(setup, fit));
  }
  return status::done;
}

}  // namespace dstrain::cmd
