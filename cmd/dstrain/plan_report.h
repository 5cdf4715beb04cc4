#pragma once
#include <string>
#include <vector>

#include "cmd/plan_setup.h"

namespace dstrain::cmd {

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
