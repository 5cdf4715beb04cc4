#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::string_view dtypes = "fp32|fp16|bf16";
constexpr std::string_view dtype_synonyms =
    "float32:fp32|float:fp32|torch.float32:fp32|float16:fp16|half:fp16|torch.float16:fp16|"
    "bfloat16:bf16|torch.bfloat16:bf16|bfp16:bf16";

constexpr std::array top_table{
    implemented("train_batch_size", integer, "").or_auto(),
    implemented("train_micro_batch_size_per_gpu", integer, "").or_auto(),
    implemented("gradient_accumulation_steps", integer, "").or_auto(),
    implemented("gradient_clipping", number, "1.0").at_least(0).or_auto(),
    implemented("steps_per_print", integer, "null").at_least(0),
    off_only("managed_gradient_accumulation", boolean, "true", "an update at every micro step"),
    off_only("dump_state", boolean, "false", "dumping the engine's state"),
    implemented("communication_data_type", text, "null")
        .one_of("fp32|fp16|bf16|bfp16")
        .in_any_case(),
    hint("seq_parallel_communication_data_type", text, "fp32", "there is no sequence parallelism")
        .one_of("fp32|fp16|bf16")
        .in_any_case()
        .silent_at("fp32"),
    off_only("sequence_parallel_size", integer, "1", "sequence parallelism"),
    implemented("gradient_allreduce_op", text, "mean").one_of("mean|sum").in_any_case(),
    hint("prescale_gradients",
         boolean,
         "false",
         "gradients are divided by the number of labels where they begin")
        .silent_at("false"),
    hint("gradient_predivide_factor",
         number,
         "1.0",
         "gradients are divided by the number of labels where they begin")
        .silent_at("1.0"),
    off_only("sparse_gradients", boolean, "false", "sending gradients as sparse tensors"),
    off_only("disable_allgather", boolean, "false", "replacing the all-gather by broadcasts"),
    hint("allgather_size", integer, "5e8", "weights are gathered unit by unit").at_least(0),
    hint("zero_allow_untested_optimizer",
         boolean,
         "false",
         "every optimizer of dstrain is tested with every stage"),
    hint("zero_force_ds_cpu_optimizer",
         boolean,
         "true",
         "dstrain chooses the optimizer's place itself"),
    off_only("wall_clock_breakdown",
             boolean,
             "false",
             "the breakdown of a step's time (--profile FILE shows it)"),
    off_only("memory_breakdown",
             boolean,
             "false",
             "the breakdown of memory (metrics.jsonl has the peak of each tier)"),
    off_only("graph_harvesting", boolean, "false", "the harvesting of CUDA graphs"),
    hint("vocabulary_size", integer, "null", "the model's config.json has the vocabulary"),
    implemented("dataloader_drop_last", boolean, "false").or_auto(),
    hint("disable_python_gc", boolean, "false", "there is no Python"),
    hint("log_level", text, "null", "use dstrain's launch option --log_level"),
    off_only("use_data_before_expert_parallelism", boolean, "false", "expert parallelism"),
    group("timers"),
    group("timers.throughput"),
    hint("timers.throughput.enabled", boolean, "true", "throughput is always measured"),
    hint("timers.throughput.synchronized", boolean, "true", "throughput is always measured"),
    group("data_types"),
    implemented("data_types.grad_accum_dtype", text, "null")
        .one_of(dtypes)
        .synonymous(dtype_synonyms),
    off_only(
        "data_types.param_dtype", text, "null|fp32", "a 16-bit type by this key (use bf16.enabled)")
        .one_of(dtypes)
        .synonymous(dtype_synonyms),
    off_only("data_types.buffer_dtype", text, "null|fp32", "16-bit buffers")
        .one_of(dtypes)
        .synonymous(dtype_synonyms),
    hint("data_types.keep_in_fp32_modules", list, "", "the built-in models have no buffers")
        .or_auto(),
    unread("seed", "DeepSpeed never reads it; use --seed"),
    unread("fp32_allreduce",
           "DeepSpeed no longer reads it; use \"communication_data_type\": \"fp32\""),
    unread("max_grad_norm", "DeepSpeed never reads it here; use gradient_clipping"),
};

constexpr std::string_view not_threads =
    "read as intra_op_parallelism, the name that DeepSpeed reads";

constexpr std::array alias_table{
    Alias{"bfloat16", "bf16", ""},
    Alias{"bfp16", "bf16", "DeepSpeed does not know this spelling; read as bf16"},
    Alias{"tensor_parallel.tp", "tensor_parallel.tensor_parallel", ""},
    Alias{"tensor_parallel.kernel_inject", "tensor_parallel.replace_with_kernel_inject", ""},
    Alias{"aio.thread_count", "aio.intra_op_parallelism", not_threads},
    Alias{"aio.num_threads", "aio.intra_op_parallelism", not_threads},
    Alias{"zero_optimization.stage3_gather_fp16_weights_on_model_save",
          "zero_optimization.stage3_gather_16bit_weights_on_model_save",
          "deprecated; now stage3_gather_16bit_weights_on_model_save"},
    Alias{"zero_optimization.gather_16bit_weights_on_model_save",
          "zero_optimization.stage3_gather_16bit_weights_on_model_save", ""},
    Alias{"zero_optimization.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size",
          ""},
    Alias{"zero_optimization.param_persistence_threshold",
          "zero_optimization.stage3_param_persistence_threshold", ""},
    Alias{"zero_optimization.model_persistence_threshold",
          "zero_optimization.stage3_model_persistence_threshold", ""},
    Alias{"zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters",
          ""},
    Alias{"zero_optimization.max_reuse_distance", "zero_optimization.stage3_max_reuse_distance",
          ""},
    Alias{"zero_optimization.module_granularity_threshold",
          "zero_optimization.stage3_module_granularity_threshold", ""},
    Alias{"zero_optimization.use_all_reduce_for_fetch_params",
          "zero_optimization.stage3_use_all_reduce_for_fetch_params", ""},
    Alias{"zero_optimization.allgather_sequential", "zero_optimization.stage3_allgather_sequential",
          ""},
};

constexpr std::array replacement_table{
    Replaced{"zero_optimization.cpu_offload", "zero_optimization.offload_optimizer"},
    Replaced{"zero_optimization.cpu_offload_use_pin_memory", "zero_optimization.offload_optimizer"},
    Replaced{"zero_optimization.cpu_offload_param", "zero_optimization.offload_param"},
};

}  // namespace

std::span<const Key> top_level_keys() {
  return top_table;
}
std::span<const Alias> aliases() {
  return alias_table;
}
std::span<const Replaced> replacements() {
  return replacement_table;
}

}  // namespace dstrain::config
