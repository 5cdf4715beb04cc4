#include "cmd/dstrain/inference_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/plan_report.h"
#include "cmd/inference_options.h"
#include "cmd/plan_setup.h"
#include "cmd/train_setup.h"
#include "runtime/base/error.h"
#include "runtime/config/resolve.h"
#include "runtime/ops/library_memory.h"
#include "runtime/session/memory_setup.h"
#include "runtime/session/model_loading.h"
#include "runtime/session/offload_setup.h"

namespace dstrain::cmd {
namespace {

constexpr std::int64_t shortest_context = 1024;
constexpr std::int64_t largest_batch = 256;

/// Powers of two up to the model's positions, and these.
std::vector<std::int64_t> contexts(const model::Model& model) {
  constexpr std::int64_t longest = 1 << 20;
  const std::int64_t most = std::min(model.positions, longest);
  std::vector<std::int64_t> all;
  for (std::int64_t context = shortest_context; context < most; context *= 2) {
    all.push_back(context);
  }
  if (model.positions <= longest) all.push_back(most);
  return all;
}

/// Where weights may be: whole on each rank, or shared out in a tier.
std::vector<zero::PlanChoice> placements(std::span<const MemoryTier> tiers, int world) {
  std::vector<zero::PlanChoice> all{{}};
  for (const MemoryTier tier : tiers) {
    if (tier == MemoryTier::device && world == 1) continue;
    all.push_back({.stage = 3, .parameters = tier});
  }
  return all;
}

bool fits(const zero::MemoryPlan& memory, const zero::PlanBudget& budget) {
  return zero::plan_miss(memory, budget).total() == 0;
}

}  // namespace

InferencePlan::InferencePlan(config::TrainOptions options,
                             int world,
                             DeviceKind device,
                             std::span<const MemoryTier> tiers)
    : options_(std::move(options)), world_(world), choices_(placements(tiers, world)) {
  if (options_.deepspeed.typed() || options_.deepspeed_config.typed()) {
    fail(ErrorCode::usage, "plan: --deepspeed: the configuration is what plan finds; leave it out");
  }
  options_.inference = true;
  if (!options_.model_name_or_path.value.empty()) choose_stored_dtype(options_);
  const config::TrainSettings settings = config::resolve(options_, {.world_size = world}).settings;
  model_ = session::model_config(settings.model)->make({.dtype = settings.dtype, .device = device});
}

std::string InferencePlan::ds_config(const zero::PlanChoice& choice) const {
  nlohmann::ordered_json config;
  if (model_.dtype != DType::f32) {
    config[config::precision_name(model_.dtype)] = {{"enabled", true}};
  }
  config["zero_optimization"] = zero_section(choice);
  return config.dump(2);
}

InferencePlan::Row InferencePlan::row_of(const zero::PlanChoice& choice,
                                         std::int64_t context,
                                         std::int64_t batch) const {
  const config::DsConfig config = config::DsConfig::parse(ds_config(choice), "plan");
  config::TrainSettings settings =
      config::resolve_config(options_, config, {.world_size = world_, .hidden = model_.hidden})
          .settings;
  settings.trains = false;
  const engine::Decoder::Options decoder{
      .slots = batch, .positions = context, .source = model_.pairs ? context : 0};
  return {choice, context, batch, session::set_up_memory(settings, model_, world_, decoder).plan,
          engine::Decoder::cache_bytes(model_, decoder)};
}

/// Batches are powers of two.
InferencePlan::Row InferencePlan::largest(const zero::PlanChoice& choice,
                                          std::int64_t context,
                                          const zero::PlanBudget& budget) const {
  Row best = row_of(choice, context, 1);
  if (!fits(best.memory, budget)) {
    best.batch = 0;
    return best;
  }
  for (std::int64_t batch = 2; batch <= largest_batch; batch *= 2) {
    const Row next = row_of(choice, context, batch);
    if (!fits(next.memory, budget)) break;
    best = next;
  }
  return best;
}

std::vector<InferencePlan::Row> InferencePlan::rows(const zero::PlanBudget& budget) const {
  std::vector<Row> fit;
  std::vector<zero::PlanRow> missed;
  for (const zero::PlanChoice& choice : choices_) {
    for (const std::int64_t context : contexts(model_)) {
      const Row row = largest(choice, context, budget);
      if (row.batch == 0) {
        missed.push_back({choice, row.memory, 0});
        break;  // longer contexts do not fit either
      }
      fit.push_back(row);
    }
  }
  if (!fit.empty()) return fit;
  const zero::PlanRow& closest = zero::closest_row(missed, budget);
  fail(ErrorCode::out_of_memory,
       "plan: no text fits on {}. The closest configuration needs {} more:\n{}\nUse more memory or "
       "ranks, or a smaller model",
       name_of(model_.device), zero::describe(zero::plan_miss(closest.memory, budget)),
       ds_config(closest.choice));
}

std::string InferencePlan::table(const std::vector<Row>& rows) const {
  std::string text = fmt::format("{:<5} {:<6} {:>9} {:>6}  {:>11} {:>11} {:>11}\n", "ZeRO",
                                 "weights", "context", "batch", "cache", "device", "host");
  for (const Row& row : rows) {
    text += fmt::format(
        "{:<5} {:<7} {:>9} {:>6}  {:>11} {:>11} {:>11}\n", row.choice.stage,
        row.choice.parameters == MemoryTier::device
            ? "device"
            : session::offload_device(row.choice.parameters),
        row.context, row.batch, format_bytes(row.cache), format_bytes(row.memory.total()),
        format_bytes(row.memory.total(MemoryTier::host) + row.memory.total(MemoryTier::pinned)));
  }
  return text + fmt::format(
                    "\nPlanned for {} in {}. batch: the most texts that a rank generates at a time "
                    "(up to {}).\ncache: the part of the device's memory for keys and values. "
                    "Libraries take more: {}.\n\nThe configuration of the first, for --deepspeed:\n"
                    "{}\n",
                    name_of(model_.device), name_of(model_.dtype), largest_batch,
                    ops::library_memory(model_.device), ds_config(rows.front().choice));
}

std::string InferencePlan::json(const std::vector<Row>& rows) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json one;
    one["stage"] = row.choice.stage;
    one["offload_param"] = session::offload_device(row.choice.parameters);
    one["context"] = row.context;
    one["batch_size"] = row.batch;
    one["cache"] = row.cache;
    one["device"] = name_of(model_.device);
    add_memory(one, row.memory);
    one["ds_config"] = nlohmann::ordered_json::parse(ds_config(row.choice));
    list.push_back(one);
  }
  return list.dump(2);
}

}  // namespace dstrain::cmd
