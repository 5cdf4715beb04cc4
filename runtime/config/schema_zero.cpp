#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::string_view as_recorded =
    "dstrain gathers and frees each unit in the recorded order of the step";
constexpr std::string_view any_ranks = "any checkpoint loads on any number of ranks, at any stage";

constexpr std::array zero_table{
    group("zero_optimization"),
    implemented("zero_optimization.stage", integer, "0").range(0, 3),
    implemented("zero_optimization.reduce_bucket_size", integer, "5e8").at_least(0),
    implemented("zero_optimization.stage3_param_persistence_threshold", integer, "1e5").at_least(0),
    implemented(
        "zero_optimization.stage3_model_persistence_threshold", integer, "9223372036854775807")
        .at_least(0),
    implemented("zero_optimization.overlap_comm", boolean, "null"),
    implemented("zero_optimization.stage3_prefetch_bucket_size", integer, "5e7").at_least(0),
    implemented("zero_optimization.stage3_max_live_parameters", integer, "1e9").at_least(0),
    implemented("zero_optimization.stage3_max_reuse_distance", integer, "1e9").at_least(0),
    implemented("zero_optimization.stage3_gather_16bit_weights_on_model_save", boolean, "false"),

    hint("zero_optimization.contiguous_gradients",
         boolean,
         "true",
         "a unit's gradients always lie in one piece"),
    hint("zero_optimization.reduce_scatter",
         boolean,
         "true",
         "sharded gradients are always reduced by reduce-scatter"),
    hint("zero_optimization.use_multi_rank_bucket_allreduce",
         boolean,
         "true",
         "sharded gradients are always reduced by reduce-scatter"),
    hint("zero_optimization.allgather_partitions",
         boolean,
         "true",
         "updated weights are always gathered by all-gather"),
    hint("zero_optimization.allgather_bucket_size",
         integer,
         "5e8",
         "weights are gathered unit by unit")
        .at_least(0),
    implemented("zero_optimization.sub_group_size", integer, "1e9").at_least(0),
    hint("zero_optimization.stage3_module_granularity_threshold", integer, "0", as_recorded)
        .at_least(0),
    hint("zero_optimization.stage3_use_all_reduce_for_fetch_params", boolean, "false", as_recorded),
    hint("zero_optimization.stage3_allgather_sequential", boolean, "false", as_recorded),
    hint("zero_optimization.round_robin_gradients",
         boolean,
         "false",
         "gradients go to the rank that owns their shard"),
    hint("zero_optimization.compute_grad_norm",
         boolean,
         "true",
         "the norm of the gradients is always computed"),
    hint("zero_optimization.parameter_alignment",
         boolean,
         "false",
         "the layout of the parameters is dstrain's own"),
    hint("zero_optimization.ignore_unused_parameters",
         boolean,
         "true",
         "the built-in models use every parameter"),
    hint("zero_optimization.memory_efficient_linear",
         boolean,
         "true",
         "linear layers never copy their weights"),
    hint("zero_optimization.override_module_apply", boolean, "true", "there are no Python modules"),
    hint("zero_optimization.pipeline_loading_checkpoint",
         boolean,
         "false",
         "every rank reads only its part of the weights"),
    hint("zero_optimization.load_from_fp32_weights",
         boolean,
         "true",
         "a run resumes from the fp32 weights of a checkpoint"),
    hint("zero_optimization.elastic_checkpoint", boolean, "false", any_ranks),
    hint("zero_optimization.log_trace_cache_warnings", boolean, "false", as_recorded),
    hint("zero_optimization.enable_sanity_checks", boolean, "false", "checks are always on"),
    hint("zero_optimization.leaf_module", section, "", as_recorded),
    inert("zero_optimization.leaf_module.classes", list, ""),
    inert("zero_optimization.leaf_module.names", list, "[]"),
    inert("zero_optimization.leaf_module.name_suffixes", list, "[]"),

    off_only("zero_optimization.legacy_stage1", boolean, "false", "the legacy stage 1"),
    off_only("zero_optimization.zero_hpz_partition_size", integer, "1", "ZeRO++ (hpZ)"),
    off_only("zero_optimization.zero_quantized_weights", boolean, "false", "ZeRO++ (qwZ)"),
    off_only(
        "zero_optimization.zero_quantized_nontrainable_weights", boolean, "false", "ZeRO++ (qwZ)"),
    off_only("zero_optimization.zero_quantized_gradients", boolean, "false", "ZeRO++ (qgZ)"),
    off_only("zero_optimization.zeropp_loco_param", section, "null", "ZeRO++ (LoCo)"),
    inert("zero_optimization.zeropp_loco_param.err_beta", number, "0.8"),
    inert("zero_optimization.zeropp_loco_param.reset_T", integer, "1024"),
    off_only("zero_optimization.mics_shard_size", integer, "-1", "MiCS"),
    off_only("zero_optimization.mics_hierarchical_params_gather", boolean, "false", "MiCS"),
    off_only("zero_optimization.save_muon_momentum_buffer_in_memory", boolean, "false", "Muon"),
    off_only("zero_optimization.zenflow", section, "null", "ZenFlow"),
    inert("zero_optimization.zenflow.topk_ratio", number, "0.1"),
    inert("zero_optimization.zenflow.select_strategy", text, "auto").one_of("auto|step|epoch"),
    inert("zero_optimization.zenflow.select_interval", any, "auto"),
    inert("zero_optimization.zenflow.update_interval", any, "auto"),
    inert("zero_optimization.zenflow.overlap_step", boolean, "false"),
    inert("zero_optimization.zenflow.offload", boolean, "false"),
    inert("zero_optimization.zenflow.auto_ratio", number, "0.99"),
    inert("zero_optimization.zenflow.full_warm_up_rounds", integer, "0"),
    inert("zero_optimization.zenflow.pt_reserved_cores_perc", number, "0.5"),
    inert("zero_optimization.zenflow.steps_per_epoch", integer, "null"),

    unread("zero_optimization.stage3_max_act_size", "DeepSpeed has no such setting"),
    unread("zero_optimization.aio", "DeepSpeed reads aio at the top level only"),
    refused("zero_optimization.grad_hooks", "DeepSpeed has removed this setting; leave it out"),
};

}  // namespace

std::span<const Key> zero_keys() {
  return zero_table;
}

}  // namespace dstrain::config
