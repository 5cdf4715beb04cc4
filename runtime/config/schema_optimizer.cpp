#include <array>

#include "runtime/config/schema.h"
#include "runtime/rules/registry.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr double momentum_max = 0.9999999999;  // the largest value that counts as less than 1

/// A parameter of DeepSpeed's optimizers. It is implemented if an update rule has it.
constexpr Key parameter(std::string_view path, KeyType type, std::string_view fallback) {
  constexpr std::string_view prefix = "optimizer.params.";
  const bool built = rules::has_parameter(path.substr(prefix.size()));
  return built ? implemented(path, type, fallback) : inert(path, type, fallback);
}

// The parameters of all types; native_types.cpp says which type has which.
constexpr std::array optimizer_table{
    group("optimizer"),
    implemented("optimizer.type", text, "").in_any_case(),
    off_only("optimizer.legacy_fusion", boolean, "false", "the legacy fusion"),
    group("optimizer.params"),
    parameter("optimizer.params.lr", number, "1e-3").at_least(0).or_auto(),
    parameter("optimizer.params.betas", list, "[0.9, 0.999]").or_auto(),
    parameter("optimizer.params.eps", number, "1e-8").at_least(0).or_auto(),
    parameter("optimizer.params.weight_decay", number, "0").at_least(0).or_auto(),
    parameter("optimizer.params.bias_correction", boolean, "true"),
    implemented("optimizer.params.adam_w_mode", boolean, "true"),
    implemented("optimizer.params.torch_adam", boolean, "false"),
    off_only("optimizer.params.amsgrad", boolean, "false", "AMSGrad"),
    inert("optimizer.params.set_grad_none", boolean, "true"),
    inert("optimizer.params.fused", boolean, "false"),  // torch only; updates here are always fused
    inert("optimizer.params.foreach", boolean, "false"),  // torch only
    implemented("optimizer.params.fp32_optimizer_states", boolean, "true"),
    parameter("optimizer.params.momentum", number, "0.95"),
    parameter("optimizer.params.ns_method", text, "gram"),
    parameter("optimizer.params.muon_lr", number, ""),
    parameter("optimizer.params.adam_lr", number, ""),
    parameter("optimizer.params.eps_inside_sqrt", boolean, "false"),
    parameter("optimizer.params.max_coeff", number, "10.0").at_least(0),
    parameter("optimizer.params.min_coeff", number, "0.01").at_least(0),
    parameter("optimizer.params.freeze_step", integer, "100000"),
    parameter("optimizer.params.cuda_aware", boolean, "false"),
    parameter("optimizer.params.comm_backend_name", text, "nccl"),
    parameter("optimizer.params.var_freeze_step", integer, "100000"),
    parameter("optimizer.params.var_update_scaler", integer, "16"),
    parameter("optimizer.params.local_step_scaler", integer, "32678"),
    parameter("optimizer.params.local_step_clipper", integer, "16"),
    parameter("optimizer.params.coeff_beta", number, "0.9"),
    parameter("optimizer.params.factor_max", number, "4"),
    parameter("optimizer.params.factor_min", number, "0.5"),
    parameter("optimizer.params.factor_threshold", number, "0.1"),
    refused("optimizer.params.max_grad_norm",
            "not a parameter of an optimizer; use the top-level key \"gradient_clipping\""),

    group("scheduler"),
    implemented("scheduler.type", text, ""),
    group("scheduler.params"),
    implemented("scheduler.params.warmup_min_lr", number, "0").at_least(0).or_auto(),
    implemented("scheduler.params.warmup_max_lr", number, "null").at_least(0).or_auto(),
    implemented("scheduler.params.warmup_num_steps", integer, "1000").at_least(0).or_auto(),
    implemented("scheduler.params.warmup_type", text, "log").one_of("log|linear").or_auto(),
    implemented("scheduler.params.total_num_steps", integer, "").at_least(1).or_auto(),
    implemented("scheduler.params.warmup_min_ratio", number, "0").at_least(0),
    implemented("scheduler.params.cos_min_ratio", number, "1e-4").at_least(0),
    implemented("scheduler.params.lr_range_test_min_lr", number, "1e-3").at_least(0),
    implemented("scheduler.params.lr_range_test_step_size", integer, "2000").at_least(1),
    implemented("scheduler.params.lr_range_test_step_rate", number, "1.0").at_least(0),
    implemented("scheduler.params.lr_range_test_staircase", boolean, "false"),
    implemented("scheduler.params.cycle_min_lr", number, "").at_least(0),
    implemented("scheduler.params.cycle_max_lr", number, "").at_least(0),
    implemented("scheduler.params.decay_lr_rate", number, "0").at_least(0),
    implemented("scheduler.params.cycle_first_step_size", integer, "2000").at_least(1),
    implemented("scheduler.params.cycle_second_step_size", integer, "null").at_least(0),
    implemented("scheduler.params.cycle_first_stair_count", integer, "0").at_least(0),
    implemented("scheduler.params.cycle_second_stair_count", integer, "null").at_least(0),
    implemented("scheduler.params.decay_step_size", integer, "0").at_least(0),
    implemented("scheduler.params.cycle_momentum", boolean, "true"),
    implemented("scheduler.params.cycle_min_mom", number, "0.8").range(0, momentum_max),
    implemented("scheduler.params.cycle_max_mom", number, "0.9").range(0, momentum_max),
    implemented("scheduler.params.decay_mom_rate", number, "0").at_least(0),
    implemented("scheduler.params.last_batch_iteration", integer, "-1").at_least(-1),
    unread("scheduler.last_batch_iteration", "DeepSpeed reads it in \"params\""),
    unread("last_batch_iteration", "DeepSpeed reads it in the scheduler's \"params\""),
};

}  // namespace

std::span<const Key> optimizer_keys() {
  return optimizer_table;
}

}  // namespace dstrain::config
