#include "cmd/plan_setup.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/config/resolve.h"
#include "runtime/session/memory_setup.h"
#include "runtime/session/model_loading.h"
#include "runtime/session/offload_setup.h"
#include "runtime/session/run_data.h"
#include "zero/step_cost.h"

namespace dstrain::cmd {
namespace {

double cost_of(const zero::StepWork& work, DeviceKind device) {
  if (predicts_time(device)) return zero::step_cost(work);
  return static_cast<double>(work.sent + work.copied + work.swapped);
}

}  // namespace

nlohmann::ordered_json zero_section(const zero::PlanChoice& choice) {
  nlohmann::ordered_json zero{{"stage", choice.stage}};
  const auto offload = [&zero](const char* section, MemoryTier tier) {
    if (tier != MemoryTier::device) zero[section]["device"] = session::offload_device(tier);
    if (tier == MemoryTier::nvme) zero[section]["nvme_path"] = "/local_nvme";  // as in DeepSpeed's
  };
  offload("offload_optimizer", choice.optimizer);
  offload("offload_param", choice.parameters);
  if (choice.parameters == MemoryTier::nvme) zero["offload_param"]["max_in_cpu"] = 0;  // all of it
  if (choice.lean) {
    zero["overlap_comm"] = false;
    zero["stage3_param_persistence_threshold"] = 0;
  }
  return zero;
}

PlanSetup::PlanSetup(config::TrainOptions options, int world, DeviceKind device)
    : options_(std::move(options)), world_(world) {
  if (options_.deepspeed.typed() || options_.deepspeed_config.typed()) {
    fail(ErrorCode::usage, "plan: {}: the configuration is what plan finds; leave it out",
         options_.deepspeed.typed() ? "--deepspeed" : "--deepspeed_config");
  }
  settings_ = config::resolve(options_, {.world_size = world}).settings;
  model_ = session::model_config(settings_.model)
               ->make({settings_.dtype, settings_.model.in_splits, device});
  session::settle_lengths(settings_.data, model_);
}

std::string PlanSetup::ds_config(const zero::PlanChoice& choice) const {
  nlohmann::ordered_json config{{"train_micro_batch_size_per_gpu", settings_.micro_batch_size},
                                {"gradient_accumulation_steps", settings_.accumulation_steps}};
  if (settings_.dtype != DType::f32) {
    config[config::precision_name(settings_.dtype)] = {{"enabled", true}};
  }
  config["zero_optimization"] = zero_section(choice);
  return config.dump(2);
}

zero::PlanRow PlanSetup::row(const zero::PlanChoice& choice) const {
  const config::Context context{.world_size = world_, .hidden = model_.hidden};
  const config::DsConfig config = config::DsConfig::parse(ds_config(choice), "plan");
  config::TrainSettings settings = config::resolve_config(options_, config, context).settings;
  settings.data = settings_.data;
  settings.gradient_checkpointing = choice.checkpointing;
  const session::MemorySetup memory = session::set_up_memory(settings, model_, world_);
  const zero::StepWork work = zero::step_work(
      *memory.layout,
      {.store = memory.store,
       .flops = model_.flops(engine::batch_shape(settings.micro_batch_size, settings.data)),
       .micro_steps = settings.accumulation_steps,
       .checkpointing = choice.checkpointing});
  return {choice, memory.plan, cost_of(work, model_.device)};
}

std::vector<zero::PlanRow> PlanSetup::rows(std::span<const MemoryTier> tiers) const {
  const config::Flag<bool>& checkpointing = options_.gradient_checkpointing;
  std::vector<zero::PlanRow> rows;
  for (const zero::PlanChoice& choice : zero::plan_choices(tiers)) {
    if (checkpointing.typed() && choice.checkpointing != checkpointing.value) continue;
    rows.push_back(row(choice));
  }
  // Where nothing else tells them apart, who computes less is faster.
  std::stable_partition(rows.begin(), rows.end(),
                        [](const zero::PlanRow& row) { return !row.choice.checkpointing; });
  return rows;
}

}  // namespace dstrain::cmd
