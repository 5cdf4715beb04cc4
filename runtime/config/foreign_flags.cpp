#include <array>

#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

constexpr std::string_view no_value = "";

constexpr FlagRow foreign_row(FlagStatus status,
                              std::string_view name,
                              std::string_view value,
                              std::string_view why,
                              std::string_view off) {
  return {.name = name,
          .value = value,
          .help = why,
          .status = status,
          .off = value.empty() && off.empty() ? "false" : off};
}

/// `off`: values for which nothing need be said.
constexpr FlagRow hint(std::string_view name,
                       std::string_view value,
                       std::string_view why,
                       std::string_view off = {}) {
  return foreign_row(FlagStatus::hint, name, value, why, off);
}

/// `off`: values that are accepted.
constexpr FlagRow refused(std::string_view name,
                          std::string_view value,
                          std::string_view why,
                          std::string_view off = {}) {
  return foreign_row(FlagStatus::refused, name, value, why, off);
}

constexpr FlagRow negatable(FlagRow row) {
  row.negatable = true;
  return row;
}

constexpr FlagRow also(FlagRow row, std::string_view aliases) {
  row.aliases = aliases;
  return row;
}

constexpr FlagRow one_of(FlagRow row, std::string_view choices) {
  row.choices = choices;
  return row;
}

namespace reason {
constexpr std::string_view unbuilt = "not implemented";
constexpr std::string_view fp16 = "fp16 is not implemented, --bf16 is";
constexpr std::string_view translation =
    "translation is not implemented: only language models are trained";
constexpr std::string_view hub = "not implemented; nothing is sent anywhere";
constexpr std::string_view no_hub = "nothing is sent anywhere";
constexpr std::string_view no_download = "nothing is downloaded: models and data are files";
constexpr std::string_view data_sets = "data sets are not downloaded; give --train_file FILE";
constexpr std::string_view mapped = "tokens are read from mapped files, beside the step";
constexpr std::string_view quiet =
    "metrics and progress are in OUTPUT_DIR/metrics.jsonl and stdout";
constexpr std::string_view fsdp =
    "FSDP is not implemented; zero_optimization.stage 3 shards likewise";
constexpr std::string_view compiled = "dstrain is compiled already";
constexpr std::string_view launcher_device = "the launch option --device chooses the device";
constexpr std::string_view transport =
    "ranks on CPUs use shared memory, and gloo or MPI between nodes; DSTRAIN_COMM=gloo|mpi|shm "
    "asks for one";
constexpr std::string_view tokenizers = "only --tokenizer byte is implemented, or tokens in a .bin";
constexpr std::string_view ddp =
    "there is no DistributedDataParallel; gradients are reduced by ZeRO";
constexpr std::string_view decay = "not implemented; use --lr_scheduler_type or a scheduler";
constexpr std::string_view warmup = "use --warmup_ratio or --warmup_steps";
constexpr std::string_view dropout = "use --config_overrides \"attn_pdrop=X,resid_pdrop=X\"";
constexpr std::string_view checkpointing =
    "use the section activation_checkpointing of the configuration";
constexpr std::string_view parallel = "ZeRO over ranks is the one parallelism";
constexpr std::string_view tpu = "TPUs are not supported";
}  // namespace reason

const std::array hugging_face{
    // Model.
    one_of(hint("model_type", "TYPE", "gpt2 is what is trained", "gpt2"), "gpt2"),
    refused("tokenizer_name", "NAME", reason::tokenizers),
    negatable(hint("use_fast_tokenizer", no_value, reason::tokenizers, "true")),
    hint("cache_dir", "DIR", reason::no_download),
    hint("model_revision", "NAME", reason::no_download, "main"),
    hint("token", "TOKEN", reason::no_download),
    hint("use_auth_token", no_value, reason::no_download),
    hint("trust_remote_code", no_value, "no code of a model is run"),
    also(hint("torch_dtype",
              "TYPE",
              "training is in fp32, or with --bf16 over fp32 masters",
              "auto|float32"),
         "dtype"),
    hint("low_cpu_mem_usage", no_value, "every rank reads only its share of the weights"),

    // Data.
    refused("dataset_name", "NAME", reason::data_sets),
    also(refused("dataset_config_name", "NAME", reason::data_sets), "dataset_config"),
    refused("test_file", "FILE", reason::unbuilt),
    hint("streaming", no_value, reason::mapped),
    refused("validation_split_percentage", "N", "give --validation_file, or --split A,B,C"),
    hint("overwrite_cache", no_value, "nothing is cached"),
    hint("preprocessing_num_workers", "N", "there is nothing to preprocess"),
    negatable(refused("keep_linebreaks", no_value, "line ends are tokens", "true")),
    refused("max_predict_samples", "N", reason::unbuilt),
    refused("source_lang", "LANGUAGE", reason::translation),
    refused("target_lang", "LANGUAGE", reason::translation),
    refused("source_prefix", "TEXT", reason::translation),
    refused("forced_bos_token", "TEXT", reason::translation),
    refused("max_source_length", "N", reason::translation),
    refused("max_target_length", "N", reason::translation),
    refused("val_max_target_length", "N", reason::translation),
    refused("num_beams", "N", reason::translation),
    refused("predict_with_generate", no_value, reason::translation),
    refused("generation_max_length", "N", reason::translation),
    refused("generation_num_beams", "N", reason::translation),
    refused("sortish_sampler", no_value, reason::translation),
    hint("pad_to_max_length", no_value, "samples are of --block_size tokens, without padding"),
    hint("ignore_pad_token_for_loss", no_value, "samples have no padding", "true"),
    hint("group_by_length", no_value, "all samples are of one length"),
    hint("length_column_name", "NAME", "all samples are of one length"),
    hint("remove_unused_columns", no_value, "token files have no columns", "true"),
    hint("label_names", "NAME", "token files have no columns"),
    hint("dataloader_num_workers", "N", reason::mapped, "0"),
    hint("dataloader_prefetch_factor", "N", reason::mapped),
    negatable(hint("dataloader_pin_memory", no_value, reason::mapped)),
    hint("dataloader_persistent_workers", no_value, reason::mapped),
    hint("dataloader_drop_last",
         no_value,
         "samples at an epoch's end that do not fill a batch are always left out",
         "true"),
    refused("ignore_data_skip", no_value, "a resumed run takes the samples that it has not taken"),

    // Schedule and evaluation.
    refused("do_predict", no_value, reason::unbuilt),
    refused("eval_on_start", no_value, reason::unbuilt),
    refused("eval_delay", "N", reason::unbuilt, "0"),
    hint("eval_accumulation_steps", "N", "no predictions are kept, only their loss"),
    hint("prediction_loss_only", no_value, "the loss is all that is computed", "true"),
    hint("batch_eval_metrics", no_value, "the loss is all that is computed"),
    hint("eval_do_concat_batches", no_value, "the loss is all that is computed", "true"),
    hint("eval_use_gather_object", no_value, "the loss is all that is computed"),
    hint("include_for_metrics", "NAME", "the loss is all that is computed"),
    hint("include_inputs_for_metrics", no_value, "the loss is all that is computed"),
    refused("lr_scheduler_kwargs", "JSON", reason::decay, "{}"),
    refused("optim_args", "TEXT", reason::unbuilt),
    refused("optim_target_modules", "NAME", reason::unbuilt),
    refused("adafactor", no_value, reason::unbuilt),
    refused("label_smoothing_factor", "X", reason::unbuilt, "0"),
    refused("neftune_noise_alpha", "X", reason::unbuilt),
    refused("past_index", "N", reason::unbuilt, "-1"),
    refused("auto_find_batch_size", no_value, "not implemented; dstrain plan finds what fits"),
    hint("average_tokens_across_devices",
         no_value,
         "the loss is always the mean over the labels of all ranks",
         "true"),
    hint("full_determinism", no_value, "runs are deterministic in any case"),

    // Precision and memory.
    refused("fp16", no_value, reason::fp16),
    refused("fp16_full_eval", no_value, reason::fp16),
    refused("fp16_opt_level", "LEVEL", reason::fp16, "O1"),
    one_of(refused("fp16_backend", "NAME", reason::fp16, "auto"), "auto|amp|apex"),
    one_of(refused("half_precision_backend", "NAME", reason::fp16, "auto"),
           "auto|amp|apex|cpu_amp|cuda_amp"),
    hint("bf16_full_eval", no_value, "evaluation is in the type of training"),
    negatable(refused("tf32", no_value, reason::unbuilt)),
    hint("gradient_checkpointing_kwargs", "JSON", "there is one way of checkpointing"),
    hint("torch_compile", no_value, reason::compiled),
    hint("torch_compile_backend", "NAME", reason::compiled),
    hint("torch_compile_mode", "NAME", reason::compiled),
    hint("torchdynamo", "NAME", reason::compiled),
    hint("jit_mode_eval", no_value, reason::compiled),
    hint("use_liger_kernel", no_value, reason::compiled),
    hint("torch_empty_cache_steps", "N", "all memory is taken before the first step"),
    negatable(hint("skip_memory_metrics", no_value, "memory is always in metrics.jsonl", "true")),

    // Output.
    hint("run_name", "NAME", "the launcher names a job; see dstrain status"),
    hint("project", "NAME", reason::quiet),
    hint("disable_tqdm", no_value, "there is no tqdm; steps_per_print sets the progress lines"),
    hint("logging_dir", "DIR", reason::quiet),
    hint("logging_first_step", no_value, "the first step is always logged", "true"),
    negatable(
        hint("logging_nan_inf_filter", no_value, "a step whose loss is not finite ends the run")),
    hint("log_on_each_node", no_value, "the launcher prints what all nodes say", "true"),
    hint("log_level", "LEVEL", "it is a launch option", "passive"),
    hint("log_level_replica", "LEVEL", "--log_level is a launch option", "warning|passive"),
    hint("include_tokens_per_second", no_value, "always in metrics.jsonl"),
    hint("include_num_input_tokens_seen", no_value, "always in metrics.jsonl"),
    negatable(refused("save_safetensors", no_value, "pickle is not written", "true")),
    refused("save_only_model", no_value, "checkpoints are made to go on from", "false"),
    hint("restore_callback_states_from_checkpoint", no_value, "there are no callbacks"),
    refused("report_to", "none", "not implemented", "none"),
    refused("push_to_hub", no_value, reason::hub),
    refused("push_to_hub_model_id", "NAME", reason::hub),
    refused("push_to_hub_organization", "NAME", reason::hub),
    hint("push_to_hub_token", "TOKEN", reason::no_hub),
    hint("hub_model_id", "NAME", reason::no_hub),
    hint("hub_strategy", "WHEN", reason::no_hub),
    hint("hub_token", "TOKEN", reason::no_hub),
    hint("hub_private_repo", no_value, reason::no_hub),
    hint("hub_always_push", no_value, reason::no_hub),
    hint("hub_revision", "NAME", reason::no_hub),

    // Ranks.
    hint("local_rank", "N", "every rank learns its own from its environment", "-1"),
    hint("no_cuda", no_value, reason::launcher_device),
    hint("use_cpu", no_value, reason::launcher_device),
    refused("use_mps_device", no_value, reason::unbuilt),
    one_of(hint("ddp_backend", "NAME", reason::transport), "nccl|gloo|mpi|ccl|hccl|cncl|mccl"),
    hint("ddp_timeout", "SECONDS", "the launch option --timeout is it"),
    hint("ddp_find_unused_parameters", no_value, reason::ddp),
    hint("ddp_bucket_cap_mb", "N", "zero_optimization.reduce_bucket_size is it"),
    hint("ddp_broadcast_buffers", no_value, reason::ddp),
    refused("fsdp", "OPTIONS", reason::fsdp),
    refused("fsdp_config", "FILE", reason::fsdp),
    refused("fsdp_min_num_params", "N", reason::fsdp, "0"),
    refused("fsdp_transformer_layer_cls_to_wrap", "NAME", reason::fsdp),
    refused("accelerator_config", "FILE", reason::unbuilt),
    refused("parallelism_config", "FILE", reason::parallel),
    refused("debug", "OPTIONS", reason::unbuilt),
    refused("mp_parameters", "TEXT", reason::unbuilt),
    refused("tpu_num_cores", "N", reason::tpu),
    refused("tpu_metrics_debug", no_value, reason::tpu),
};

const std::array megatron{
    refused("model_parallel_size", "N", reason::parallel, "1"),
    refused("tensor_model_parallel_size", "N", reason::parallel, "1"),
    refused("pipeline_model_parallel_size", "N", reason::parallel, "1"),
    one_of(hint("distributed_backend", "NAME", reason::transport), "nccl|gloo|mpi"),
    hint("deepspeed_mpi", no_value, "ranks are found without MPI, or by the launcher"),
    one_of(hint("DDP_impl", "NAME", reason::ddp), "local|torch"),
    refused("test_data", "FILE", reason::unbuilt),
    refused("tokenizer_type", "NAME", reason::tokenizers),
    refused("tokenizer_model_type", "NAME", reason::tokenizers),
    refused("vocab_file", "FILE", reason::tokenizers),
    refused("merge_file", "FILE", reason::tokenizers),
    refused("data_path", "PREFIX", "Megatron's indexed data is not read; give --train_file FILE"),
    hint("data_impl", "NAME", reason::mapped),
    hint("lazy_loader", no_value, reason::mapped),
    hint("loose_json", no_value, reason::mapped),
    hint("mmap_warmup", no_value, reason::mapped),
    hint("num_workers", "N", reason::mapped),
    hint("resume_dataloader", no_value, "a resumed run takes the samples that it has not taken"),
    hint("eval_iters", "N", "all held-out data is evaluated, or --max_eval_samples of it"),
    refused("lr_decay_style", "STYLE", reason::decay, "constant"),
    refused("lr_decay_iters", "N", reason::decay),
    refused("min_lr", "X", reason::decay, "0"),
    refused("warmup", "X", reason::warmup, "0"),
    refused("lr_warmup_fraction", "X", reason::warmup, "0"),
    refused("lr_warmup_iters", "N", reason::warmup, "0"),
    refused("attention_dropout", "X", reason::dropout),
    refused("hidden_dropout", "X", reason::dropout),
    refused("loss_scale", "X", reason::fp16),
    refused("dynamic_loss_scale", no_value, reason::fp16),
    refused("cpu_optimizer", no_value, "use zero_optimization.offload_optimizer"),
    refused("cpu_torch_adam", no_value, "use zero_optimization.offload_optimizer"),
    refused("checkpoint_num_layers", "N", "every block is checkpointed by itself", "1"),
    refused("partition_activations", no_value, reason::checkpointing),
    refused("checkpoint_in_cpu", no_value, reason::checkpointing),
    hint("contigious_checkpointing", no_value, "activations lie where the plan puts them"),
    hint("synchronize_each_layer", no_value, "computing waits where it must"),
    hint("no_masked_softmax_fusion", no_value, reason::compiled),
    hint("no_bias_gelu_fusion", no_value, reason::compiled),
    hint("no_bias_dropout_fusion", no_value, reason::compiled),
};

}  // namespace

std::span<const FlagRow> foreign_flags() {
  static const std::vector<FlagRow> flags = [] {
    std::vector<FlagRow> all(hugging_face.begin(), hugging_face.end());
    all.insert(all.end(), megatron.begin(), megatron.end());
    return all;
  }();
  return flags;
}

}  // namespace dstrain::config
