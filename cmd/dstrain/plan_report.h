#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cmd/plan_setup.h"

namespace dstrain::cmd {

/// Adds to a JSON object what a plan takes: memory, total, outside_plan; see plan_json().
void add_memory(nlohmann::ordered_json& json, const zero::MemoryPlan& memory);

/// The output of `dstrain plan`: the rows, which must not be empty, with a rank's bytes by tier and
/// category, and the configuration of the first. Times are relative to the first's; without
/// predictions, rows have moved bytes instead.
std::string plan_table(const PlanSetup& setup, const std::vector<zero::PlanRow>& rows);

/// The same as a list of objects, each with its configuration:
/// {stage, offload_optimizer, offload_param, gradient_checkpointing,
///  relative_step_time | moved_bytes, device, memory: {TIER: {CATEGORY: bytes}},
///  total: {TIER: bytes}, outside_plan, ds_config, training_options}.
std::string plan_json(const PlanSetup& setup, const std::vector<zero::PlanRow>& rows);

}  // namespace dstrain::cmd
