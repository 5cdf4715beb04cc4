#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::string_view use_flag = "use --gradient_checkpointing";
constexpr std::string_view own_writer =
    "every rank writes its own shard, on a thread beside training";

constexpr std::array keys{
    group("activation_checkpointing"),
    off_only("activation_checkpointing.partition_activations",
             boolean,
             "false",
             "partitioned activations"),
    hint("activation_checkpointing.number_checkpoints", integer, "null", use_flag),
    off_only("activation_checkpointing.contiguous_memory_optimization",
             boolean,
             "false",
             "contiguous activation checkpoints"),
    implemented("activation_checkpointing.cpu_checkpointing", boolean, "false"),
    hint("activation_checkpointing.synchronize_checkpoint_boundary",
         boolean,
         "false",
         "nothing needs to be synchronized there"),
    off_only("activation_checkpointing.profile", boolean, "false", "the profiler"),
    unread("activation_checkpointing.enabled",
           "DeepSpeed never reads it; use --gradient_checkpointing"),

    group("checkpoint"),
    implemented("checkpoint.use_node_local_storage", boolean, "false"),
    hint("checkpoint.tag_validation", text, "Warn", "one rank makes the tag, for all of them")
        .one_of("Ignore|Warn|Fail")
        .in_any_case(),
    hint("checkpoint.load_universal",
         boolean,
         "false",
         "any checkpoint loads on any number of ranks, at any stage"),
    hint("checkpoint.checkpoint_serialization",
         boolean,
         "true",
         "checkpoints are safetensors files, nothing is pickled"),
    hint("checkpoint.parallel_write", section, "", own_writer),
    inert("checkpoint.parallel_write.pipeline_stage", boolean, "false"),
    hint("checkpoint.writer", section, "", own_writer),
    inert("checkpoint.writer.type", text, "FAST").one_of("MOCK|PYTHON|FAST").in_any_case(),
    inert("checkpoint.writer.decoupled", boolean, "false"),
    inert("checkpoint.writer.io_buffer_size", integer, "67108864"),
    inert("checkpoint.writer.io_buffer_double", boolean, "true"),
    inert("checkpoint.writer.show_statistics", boolean, "false"),
    inert("checkpoint.writer.data_parallel", text, "null")
        .one_of("REPLICA|SOCKET|MACHINE")
        .in_any_case(),
    inert("checkpoint.writer.io_multiplier", integer, "1"),
    off_only("datastates_ckpt", section, "null", "the DataStates checkpoint engine").or_more(),
    group("nebula"),
    off_only("nebula.enabled", boolean, "false", "the Nebula checkpoint engine"),
    inert("nebula.load_path", text, "null"),
    inert("nebula.enable_nebula_load", boolean, "true"),
    inert("nebula.persistent_storage_path", text, "null"),
    inert("nebula.persistent_time_interval", number, "100"),
    inert("nebula.num_of_version_in_retention", integer, "2"),

    group("aio"),
    implemented("aio.block_size", integer, "1048576").range(4096, 1 << 30),
    implemented("aio.queue_depth", integer, "8").range(1, 4096),
    implemented("aio.intra_op_parallelism", integer, "1").range(1, 256),
    implemented("aio.single_submit", boolean, "false"),
    implemented("aio.overlap_events", boolean, "true"),
    off_only("aio.use_gds", boolean, "false", "GPUDirect Storage (it needs CUDA)"),

    group("pipeline"),
    off_only("pipeline.stages", any, "auto|null|1", "pipeline parallelism"),
    inert("pipeline.partition", text, "best"),
    inert("pipeline.seed_layers", boolean, "false"),
    inert("pipeline.activation_checkpoint_interval", integer, "0"),
    inert("pipeline.pipe_partitioned", boolean, "true"),
    inert("pipeline.grad_partitioned", boolean, "true"),
    unread("pipeline.micro_batch_size",
           "DeepSpeed never reads it; use train_micro_batch_size_per_gpu"),
    group("tensor_parallel"),
    off_only("tensor_parallel.autotp_size", integer, "0|1", "tensor parallelism"),
    inert("tensor_parallel.tp_overlap_comm", boolean, "false"),
    inert("tensor_parallel.preset_model", text, "null"),
    inert("tensor_parallel.partition_config", any, "null"),
    inert("tensor_parallel.keep_module_on_host", boolean, "false"),
    group("expert_parallel").or_more(),
    off_only("expert_parallel.enabled", boolean, "false", "experts"),
    inert("expert_parallel.autoep_size", integer, "1"),
    group("hybrid_engine"),
    off_only("hybrid_engine.enabled", boolean, "false", "the hybrid engine"),
    inert("hybrid_engine.max_out_tokens", integer, "512"),
    inert("hybrid_engine.inference_tp_size", integer, "1"),
    inert("hybrid_engine.release_inference_cache", boolean, "false"),
    inert("hybrid_engine.pin_parameters", boolean, "true"),
    inert("hybrid_engine.tp_gather_partition_size", integer, "8"),
    inert("hybrid_engine.enable_cuda_graph", boolean, "false"),
    group("compile").or_more(),
    off_only("compile.deepcompile", boolean, "false", "DeepCompile"),
    inert("compile.free_activation", boolean, "false"),
    inert("compile.offload_activation", boolean, "false"),
    inert("compile.offload_opt_states", boolean, "false"),
    inert("compile.offload_parameters", boolean, "false"),
    inert("compile.double_buffer", boolean, "true"),
    inert("compile.symmetric_memory", boolean, "false"),
    inert("compile.passes", any, "null"),
    off_only("sparse_attention", section, "false|null", "sparse attention"),
    inert("sparse_attention.mode", text, "fixed")
        .one_of("dense|fixed|variable|bigbird|bslongformer"),
    inert("sparse_attention.block", integer, "16"),
    inert("sparse_attention.different_layout_per_head", boolean, "false"),
    inert("sparse_attention.num_local_blocks", integer, "4"),
    inert("sparse_attention.num_global_blocks", integer, "1"),
    inert("sparse_attention.attention", text, "bidirectional"),
    inert("sparse_attention.horizontal_global_attention", boolean, "false"),
    inert("sparse_attention.num_different_global_patterns", integer, "1"),
    inert("sparse_attention.num_random_blocks", integer, "0"),
    inert("sparse_attention.local_window_blocks", list, "[4]"),
    inert("sparse_attention.global_block_indices", list, "[0]"),
    inert("sparse_attention.global_block_end_indices", list, "null"),
    inert("sparse_attention.num_sliding_window_blocks", integer, "3"),
    group("elasticity"),
    off_only("elasticity.enabled", boolean, "false", "elasticity"),
    inert("elasticity.max_train_batch_size", integer, "2000"),
    inert("elasticity.micro_batch_sizes", list, "[2, 4, 6]"),
    inert("elasticity.min_gpus", integer, "1"),
    inert("elasticity.max_gpus", integer, "10000"),
    inert("elasticity.min_time", number, "0"),
    inert("elasticity.version", number, "0.2"),
    inert("elasticity.prefer_larger_batch", boolean, "true"),
    inert("elasticity.ignore_non_elastic_batch_info", boolean, "false"),
    inert("elasticity.num_gpus_per_node", integer, "1"),
    inert("elasticity.model_parallel_size", integer, "1"),
};

}  // namespace

std::span<const Key> runtime_keys() {
  return keys;
}

}  // namespace dstrain::config
