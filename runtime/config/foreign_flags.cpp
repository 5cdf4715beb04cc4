#include <algorithm>
#include <array>

#include "runtime/config/foreign_remedies.h"
#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

constexpr std::string_view no_value = "";

namespace reason {
constexpr std::string_view unbuilt = "not implemented";
constexpr std::string_view fp16 = "there is one fp16: weights and activations are fp16";
constexpr std::string_view loss_scale = "use the section fp16 of the configuration";
constexpr std::string_view translation =
    "text is not made into pairs; give --train_file with JSON lines of token ids, {\"input_ids\": "
    "[...], \"labels\": [...]}";
constexpr std::string_view hub = "not implemented; nothing is sent anywhere";
constexpr std::string_view no_hub = "nothing is sent anywhere";
constexpr std::string_view no_download = "nothing is downloaded: models and data are files";
constexpr std::string_view data_sets = "data sets are not downloaded; give --train_file FILE";
constexpr std::string_view answers =
    "the keys of the records say what is learned: messages, of which only the answers are, or "
    "prompt and completion";
constexpr std::string_view chat_template =
    "conversations are written by the chat template of the model's directory, prompts and "
    "completions without one";
constexpr std::string_view mapped = "tokens are read from mapped files, beside the step";
constexpr std::string_view quiet =
    "metrics and progress are in OUTPUT_DIR/metrics.jsonl and stdout";
constexpr std::string_view fsdp =
    "FSDP is not implemented; zero_optimization.stage 3 shards likewise";
constexpr std::string_view compiled = "dstrain is compiled already";
constexpr std::string_view kernels = "dstrain has its own kernels";
constexpr std::string_view launcher_device = "the launch option --device chooses the device";
constexpr std::string_view transport =
    "ranks on CPUs use shared memory, and TCP or MPI between nodes; DSTRAIN_COMM=tcp|mpi|shm "
    "selects one";
constexpr std::string_view tokenizers =
    "give --tokenizer DIR, a directory with the tokenizer's files";
constexpr std::string_view fast_tokenizer = "there is one tokenizer for each kind of files";
constexpr std::string_view ddp =
    "there is no DistributedDataParallel; gradients are reduced by ZeRO";
constexpr std::string_view schedule_samples =
    "schedules count steps: give --max_steps, and --warmup_ratio or --warmup_steps";
constexpr std::string_view weight_decay = "the weight decay is constant; use --weight_decay X";
constexpr std::string_view checkpointing =
    "use the section activation_checkpointing of the configuration";
constexpr std::string_view parallel = "ZeRO is the only parallelism";
constexpr std::string_view lora = "LoRA is not implemented; all parameters are trained";
constexpr std::string_view quantized = "weights of fewer than 16 bits are not implemented";
constexpr std::string_view attention = "attention never holds its T x T matrix";
constexpr std::string_view overlapped = "communication runs beside computing where it can";
constexpr std::string_view cut = "a record that is too long loses its end";
constexpr std::string_view renamed = "records have the keys prompt and completion, or messages";
constexpr std::string_view offloaded = "it is a key of the configuration that --deepspeed names";
constexpr std::string_view tpu = "TPUs are not supported";
}  // namespace reason

/// Whether no other option can replace one that is refused for this reason.
constexpr bool is_final(std::string_view why) {
  constexpr std::array final{reason::unbuilt,  reason::hub,       reason::fsdp, reason::lora,
                             reason::parallel, reason::quantized, reason::tpu};
  return std::ranges::find(final, why) != final.end();
}

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

/// `off`: values that need no warning.
constexpr FlagRow hint_flag(std::string_view name,
                            std::string_view value,
                            std::string_view why,
                            std::string_view off = {}) {
  return foreign_row(FlagStatus::hint, name, value, why, off);
}

/// `off`: accepted values.
constexpr FlagRow refused_flag(std::string_view name,
                               std::string_view value,
                               std::string_view why,
                               std::string_view off = {}) {
  FlagRow row = foreign_row(FlagStatus::refused, name, value, why, off);
  row.leave_out = is_final(why);
  return row;
}

/// A statement that must hold for the model. Without a value it means true.
constexpr FlagRow stated_flag(std::string_view name,
                              std::string_view value,
                              std::string_view what) {
  return {.name = name, .value = value, .help = what, .status = FlagStatus::stated};
}

constexpr FlagRow told_by(FlagRow row,
                          std::string (*told)(const std::string&, const TrainOptions&)) {
  row.told = told;
  return row;
}

constexpr FlagRow several(FlagRow row) {
  row.several = true;
  return row;
}

constexpr FlagRow negatable(FlagRow row) {
  row.negatable = true;
  return row;
}

/// The remedy is reported for every value.
constexpr FlagRow always_told(FlagRow row) {
  row.off = {};
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

constexpr FlagRow with_defaults(FlagRow row, std::string_view object) {
  row.defaults = object;
  return row;
}

/// The value is also kept.
constexpr FlagRow kept_in(FlagTarget target, FlagRow row) {
  row.target = target;
  return row;
}

constexpr FlagRow leave_out(FlagRow row) {
  row.leave_out = true;
  return row;
}

constexpr FlagRow optional_value(FlagRow row) {
  row.value_optional = true;
  return row;
}

const std::array hugging_face{
    // Model.
    hint_flag("model_type", "TYPE", "config.json, or the preset of --config_name, sets it"),
    negatable(hint_flag("use_fast_tokenizer", no_value, reason::fast_tokenizer, "true")),
    hint_flag("use_slow_tokenizer", no_value, reason::fast_tokenizer),
    hint_flag("cache_dir", "DIR", reason::no_download),
    also(hint_flag("model_revision", "NAME", reason::no_download, "main"), "tokenizer_revision"),
    hint_flag("token", "TOKEN", reason::no_download),
    hint_flag("use_auth_token", no_value, reason::no_download),
    hint_flag("trust_remote_code", no_value, "no code of a model is run"),
    also(hint_flag("torch_dtype",
                   "TYPE",
                   "--bf16 or --fp16 sets the type of training, which is fp32 without them",
                   "auto|float32"),
         "dtype"),
    refused_flag("mixed_precision", "TYPE", "use --bf16 or --fp16", "no"),
    also(refused_flag("model", "DIR", "use --model_name_or_path DIR"),
         "model_name|model_path|pretrained_model_name_or_path"),
    refused_flag("model_init_kwargs",
                 "JSON",
                 "use --bf16 or --fp16, or --config_overrides with random weights",
                 "{}"),
    told_by(refused_flag("dropout", "X", "use --attention_dropout X --hidden_dropout X"),
            tell_dropout),
    hint_flag("use_cache", no_value, "it is for generation"),
    hint_flag("low_cpu_mem_usage", no_value, "every rank reads only its share of the weights"),

    // Data.
    told_by(refused_flag("dataset_name", "NAME", reason::data_sets), tell_data_sets),
    also(told_by(refused_flag("dataset_config_name", "NAME", reason::data_sets), tell_data_sets),
         "dataset_config"),
    refused_flag("test_file", "FILE", reason::unbuilt),
    hint_flag("streaming", no_value, reason::mapped),
    told_by(refused_flag("validation_split_percentage", "N", "give --validation_file FILE", "0"),
            tell_split_of_percentage),
    also(told_by(refused_flag("val_size", "X", "give --validation_file FILE", "0"),
                 tell_split_of_size),
         "val_set_size|split_dataset_ratio|test_size"),
    refused_flag("autotuning", "MODE", "dstrain plan tells what fits and how fast it is"),
    hint_flag("overwrite_cache", no_value, "the token cache follows the content"),
    hint_flag("preprocessing_num_workers", "N", "there is nothing to preprocess"),
    negatable(refused_flag("keep_linebreaks", no_value, "line ends are tokens", "true")),
    refused_flag("max_predict_samples", "N", reason::unbuilt),
    refused_flag("source_lang", "LANGUAGE", reason::translation),
    refused_flag("target_lang", "LANGUAGE", reason::translation),
    refused_flag("source_prefix", "TEXT", reason::translation),
    refused_flag("forced_bos_token", "TEXT", reason::unbuilt),
    hint_flag("val_max_target_length", "N", "held-out targets have --max_target_length"),
    refused_flag("num_beams", "N", reason::unbuilt),
    refused_flag("predict_with_generate", no_value, reason::unbuilt),
    refused_flag("generation_max_length", "N", reason::unbuilt),
    refused_flag("generation_num_beams", "N", reason::unbuilt),
    refused_flag("sortish_sampler", no_value, reason::unbuilt),
    hint_flag("pad_to_max_length", no_value, "samples are of --block_size tokens, without padding"),
    negatable(hint_flag("ignore_pad_token_for_loss", no_value, "padding is never learned", "true")),
    hint_flag("group_by_length", no_value, "all samples are of one length"),
    hint_flag("length_column_name", "NAME", "all samples are of one length", "length"),
    negatable(hint_flag("remove_unused_columns", no_value, "token files have no columns", "true")),
    several(hint_flag("label_names", "NAME", "token files have no columns")),
    hint_flag("dataloader_num_workers", "N", reason::mapped, "0"),
    hint_flag("dataloader_prefetch_factor", "N", reason::mapped),
    negatable(hint_flag("dataloader_pin_memory", no_value, reason::mapped)),
    hint_flag("dataloader_persistent_workers", no_value, reason::mapped),
    hint_flag("dataloader_multiprocessing_context", "NAME", reason::mapped),
    hint_flag("dataloader_in_order", no_value, "samples always come in order", "true"),
    refused_flag("train_sampling_strategy",
                 "NAME",
                 "samples are shuffled, or with --no_shuffle in the order of the file",
                 "random"),

    // Schedule and evaluation.
    refused_flag("train_batch_size",
                 "N",
                 "use --per_device_train_batch_size N, of each rank, or --global_batch_size N, of "
                 "all ranks"),
    also(refused_flag("early_stopping_patience",
                      "N",
                      "not implemented; --load_best_model_at_end keeps the best model"),
         "early_stopping_threshold"),
    refused_flag("do_predict", no_value, reason::unbuilt),
    refused_flag("eval_on_start", no_value, reason::unbuilt),
    refused_flag("eval_delay", "N", reason::unbuilt, "0"),
    told_by(refused_flag("max_eval_steps",
                         "N",
                         "use --max_eval_samples N, which counts samples instead of batches",
                         "-1"),
            tell_max_eval_steps),
    hint_flag("eval_accumulation_steps", "N", "no predictions are kept, only their loss"),
    hint_flag("use_legacy_prediction_loop", no_value, "there is one way of evaluating"),
    hint_flag("ray_scope", "WHEN", "there is no hyperparameter search"),
    hint_flag("prediction_loss_only", no_value, "only the loss is computed", "true|false"),
    hint_flag("batch_eval_metrics", no_value, "only the loss is computed"),
    hint_flag("eval_do_concat_batches", no_value, "only the loss is computed", "true"),
    hint_flag("eval_use_gather_object", no_value, "only the loss is computed"),
    several(hint_flag("include_for_metrics", "NAME", "only the loss is computed")),
    hint_flag("include_inputs_for_metrics", no_value, "only the loss is computed"),
    told_by(refused_flag("lr_scheduler_kwargs", "JSON", reason::unbuilt, "{}"),
            tell_scheduler_kwargs),
    refused_flag("optim_args", "TEXT", reason::unbuilt),
    several(refused_flag("optim_target_modules", "NAME", reason::unbuilt)),
    refused_flag("adafactor", no_value, reason::unbuilt),
    refused_flag("label_smoothing_factor", "X", reason::unbuilt, "0"),
    refused_flag("neftune_noise_alpha", "X", reason::unbuilt, "0"),
    refused_flag("past_index", "N", reason::unbuilt, "-1"),
    refused_flag("auto_find_batch_size", no_value, "not implemented; dstrain plan finds what fits"),
    hint_flag("average_tokens_across_devices",
              no_value,
              "the loss is always the mean over the labels of all ranks",
              "true"),
    hint_flag("full_determinism", no_value, "runs are deterministic in any case"),

    // Precision and memory.
    hint_flag("fp16_full_eval", no_value, "evaluation is in the type of training"),
    one_of(hint_flag("fp16_opt_level", "LEVEL", reason::fp16), "O1|O2|O3|01|02|03"),
    one_of(hint_flag("fp16_backend", "NAME", reason::fp16, "auto"), "auto|amp|apex"),
    one_of(hint_flag("half_precision_backend", "NAME", reason::fp16, "auto"),
           "auto|amp|apex|cpu_amp|cuda_amp"),
    hint_flag("bf16_full_eval", no_value, "evaluation is in the type of training"),
    also(hint_flag("gradient_checkpointing_kwargs", "JSON", "there is one way of checkpointing"),
         "activation_checkpointing_kwargs"),
    hint_flag("torch_compile", no_value, reason::compiled),
    hint_flag("torch_compile_backend", "NAME", reason::compiled),
    hint_flag("torch_compile_mode", "NAME", reason::compiled),
    also(hint_flag("torchdynamo", "NAME", reason::compiled, "no"), "dynamo_backend"),
    hint_flag("jit_mode_eval", no_value, reason::compiled),
    also(hint_flag("use_liger_kernel", no_value, reason::kernels),
         "liger_kernel|enable_liger_kernel|use_liger"),
    hint_flag("liger_kernel_config", "JSON", reason::kernels),
    hint_flag("torch_empty_cache_steps", "N", "all memory is taken before the first step"),
    negatable(
        hint_flag("skip_memory_metrics", no_value, "memory is always in metrics.jsonl", "true")),

    // Output.
    hint_flag("run_name", "NAME", "the launcher names a job; see dstrain status"),
    hint_flag("project", "NAME", reason::quiet, "huggingface"),
    also(hint_flag("trackio_space_id", "NAME", reason::quiet, "false"),
         "trackio_bucket_id|trackio_static_space_id"),
    hint_flag(
        "disable_tqdm", no_value, "there is no tqdm; steps_per_print sets the progress lines"),
    hint_flag("logging_dir", "DIR", reason::quiet),
    hint_flag("logging_first_step", no_value, "the first step is always logged", "true"),
    negatable(hint_flag(
        "logging_nan_inf_filter", no_value, "a step whose loss is not finite ends the run")),
    negatable(hint_flag(
        "log_on_each_node", no_value, "the launcher prints the output of all nodes", "true")),
    hint_flag("log_level", "LEVEL", "it is a launch option", "passive"),
    hint_flag("log_level_replica", "LEVEL", "--log_level is a launch option", "warning|passive"),
    hint_flag("include_tokens_per_second", no_value, "always in metrics.jsonl"),
    optional_value(
        hint_flag("include_num_input_tokens_seen", "WHICH", "always in metrics.jsonl", "no|false")),
    negatable(refused_flag("save_safetensors", no_value, "pickle is not written", "true")),
    refused_flag(
        "save_only_model", no_value, "checkpoints always hold what resuming needs", "false"),
    hint_flag("enable_jit_checkpoint", no_value, "SIGTERM always saves a checkpoint"),
    hint_flag("restore_callback_states_from_checkpoint", no_value, "there are no callbacks"),
    also(several(refused_flag("report_to", "none", "not implemented", "none")), "log_with"),
    refused_flag("push_to_hub", no_value, reason::hub),
    refused_flag("push_to_hub_model_id", "NAME", reason::hub),
    refused_flag("push_to_hub_organization", "NAME", reason::hub),
    hint_flag("push_to_hub_token", "TOKEN", reason::no_hub),
    hint_flag("hub_model_id", "NAME", reason::no_hub),
    hint_flag("hub_strategy", "WHEN", reason::no_hub, "every_save"),
    hint_flag("hub_token", "TOKEN", reason::no_hub, "<HUB_TOKEN>"),
    hint_flag("hub_private_repo", no_value, reason::no_hub),
    hint_flag("hub_always_push", no_value, reason::no_hub),
    hint_flag("hub_revision", "NAME", reason::no_hub),

    // Ranks.
    hint_flag("local_rank", "N", "every rank learns its own from its environment", "-1"),
    hint_flag("no_cuda", no_value, reason::launcher_device),
    hint_flag("use_cpu", no_value, reason::launcher_device),
    refused_flag("use_mps_device", no_value, reason::unbuilt),
    one_of(hint_flag("ddp_backend", "NAME", reason::transport), "nccl|gloo|mpi|ccl|hccl|cncl|mccl"),
    hint_flag("ddp_timeout",
              "SECONDS",
              "use the launch option --timeout, or DSTRAIN_TIMEOUT where no launcher starts ranks",
              "1800"),
    hint_flag("ddp_find_unused_parameters", no_value, reason::ddp),
    hint_flag("ddp_bucket_cap_mb", "N", "use zero_optimization.reduce_bucket_size"),
    hint_flag("ddp_broadcast_buffers", no_value, reason::ddp),
    hint_flag("ddp_static_graph", no_value, reason::ddp),
    told_by(several(refused_flag("fsdp", "OPTIONS", reason::fsdp, "false")), tell_fsdp),
    refused_flag("use_fsdp", no_value, reason::fsdp),
    refused_flag("fsdp_config", "FILE", reason::fsdp),
    refused_flag("fsdp_min_num_params", "N", reason::fsdp, "0"),
    refused_flag("fsdp_transformer_layer_cls_to_wrap", "NAME", reason::fsdp),
    with_defaults(
        refused_flag("accelerator_config", "FILE", reason::unbuilt),
        R"({"split_batches": false, "dispatch_batches": null, "even_batches": true, )"
        R"("use_seedable_sampler": true, "non_blocking": false, "use_configured_state": false, )"
        R"("gradient_accumulation_kwargs": null})"),
    refused_flag("parallelism_config", "FILE", reason::parallel),
    refused_flag("debug", "OPTIONS", reason::unbuilt),
    refused_flag("mp_parameters", "TEXT", reason::unbuilt),
    refused_flag("tpu_num_cores", "N", reason::tpu),
    refused_flag("tpu_metrics_debug", no_value, reason::tpu),
};

const std::array megatron{
    refused_flag("model_parallel_size", "N", reason::parallel, "1"),
    also(refused_flag("tensor_model_parallel_size", "N", reason::parallel, "1"),
         "tensor_parallel_size"),
    also(refused_flag("pipeline_model_parallel_size", "N", reason::parallel, "1"),
         "pipeline_parallel_size|pipe_parallel_size"),
    refused_flag("context_parallel_size", "N", reason::parallel, "1"),
    refused_flag("expert_model_parallel_size", "N", reason::parallel, "1"),
    refused_flag("sequence_parallel", no_value, reason::parallel),
    one_of(hint_flag("distributed_backend", "NAME", reason::transport), "nccl|gloo|mpi"),
    hint_flag("deepspeed_mpi", no_value, "ranks are found without MPI, or by the launcher"),
    one_of(hint_flag("DDP_impl", "NAME", reason::ddp), "local|torch"),
    also(refused_flag("test_data", "FILE", reason::unbuilt), "test_data_path"),
    refused_flag("tokenizer_type", "NAME", reason::tokenizers),
    refused_flag("tokenizer_model_type", "NAME", reason::tokenizers),
    refused_flag("tokenizer_model", "FILE", reason::tokenizers),
    refused_flag("vocab_file", "FILE", reason::tokenizers),
    refused_flag("merge_file", "FILE", reason::tokenizers),
    refused_flag("data_args_path", "FILE", "give the words of that file to --train_file"),
    refused_flag("per_split_data_args_path", "FILE", "give --train_file and --validation_file"),
    hint_flag("data_impl", "NAME", reason::mapped),
    hint_flag("lazy_loader", no_value, reason::mapped),
    hint_flag("loose_json", no_value, reason::mapped),
    hint_flag("mmap_warmup", no_value, reason::mapped),
    hint_flag("num_workers", "N", reason::mapped),
    hint_flag("resume_dataloader", no_value, "a resumed run continues with the next samples"),
    refused_flag("no_load_optim",
                 no_value,
                 "give the weights alone as --model_name_or_path DIR/checkpoint-N"),
    hint_flag("no_load_rng", no_value, "random numbers are functions of the seed and the step"),
    hint_flag("eval_iters", "N", "all held-out data is evaluated, or --max_eval_samples of it"),
    refused_flag("weight_decay_incr_style", "STYLE", reason::weight_decay, "constant"),
    refused_flag("start_weight_decay", "X", reason::weight_decay),
    refused_flag("end_weight_decay", "X", reason::weight_decay),
    several(refused_flag("rampup_batch_size",
                         "START INCREMENT SAMPLES",
                         "the batch has one size from the first step on; leave it out, and "
                         "--global_batch_size N holds throughout")),
    refused_flag("loss_scale", "X", reason::loss_scale),
    hint_flag("dynamic_loss_scale",
              no_value,
              "the loss scale is dynamic unless fp16.loss_scale fixes it"),
    refused_flag("cpu_optimizer", no_value, "use zero_optimization.offload_optimizer"),
    refused_flag("cpu_torch_adam", no_value, "use zero_optimization.offload_optimizer"),
    told_by(refused_flag("adam_offload", no_value, reason::offloaded), tell_offloaded_optimizer),
    refused_flag("exit_interval",
                 "N",
                 "not implemented; to pause a run, stop it with Ctrl-C or SIGTERM: it saves, and "
                 "--resume_from_checkpoint latest resumes it"),
    refused_flag("exit_duration_in_mins",
                 "N",
                 "not implemented; timeout --signal=TERM Nm dstrain ... ends a run, which saves "
                 "first"),
    refused_flag("eod_mask_loss", no_value, "the token behind an end-of-text token is learned"),
    hint_flag("no_pipeline_parallel", no_value, reason::parallel),
    refused_flag("mock_data", no_value, "give --train_file FILE"),
    refused_flag("checkpoint_num_layers", "N", "every block is checkpointed by itself", "1"),
    refused_flag("partition_activations", no_value, reason::checkpointing),
    refused_flag("checkpoint_in_cpu", no_value, reason::checkpointing),
    refused_flag("zero_reduce_bucket_size",
                 "N",
                 "use zero_optimization.reduce_bucket_size of the configuration"),
    hint_flag("zero_allgather_bucket_size", "N", "units are gathered in the order of the step"),
    hint_flag("zero_contigious_gradients", no_value, "gradients lie where the plan puts them"),
    hint_flag("zero_reduce_scatter", no_value, "stages 1 to 3 reduce-scatter"),
    hint_flag("contigious_checkpointing", no_value, "activations lie where the plan puts them"),
    hint_flag("scattered_embeddings", no_value, "a block's inputs lie where the plan puts them"),
    hint_flag("split_transformers", no_value, "every block is checkpointed by itself"),
    hint_flag("synchronize_each_layer", no_value, "computation waits only where it must"),
    hint_flag("no_masked_softmax_fusion", no_value, reason::kernels),
    hint_flag("no_bias_gelu_fusion", no_value, reason::kernels),
    hint_flag("no_bias_dropout_fusion", no_value, reason::kernels),
    hint_flag("no_rope_fusion", no_value, reason::kernels),
    hint_flag("no_gradient_accumulation_fusion", no_value, reason::kernels),
    hint_flag("no_query_key_layer_scaling",
              no_value,
              "scores are never divided by the number of the layer, unless config.json says so"),
    hint_flag("transformer_impl", "NAME", reason::kernels),
    hint_flag("use_mcore_models", no_value, reason::kernels),
    hint_flag("attention_backend", "NAME", reason::attention),
    hint_flag("fp16_lm_cross_entropy", no_value, "the loss is fp32"),
    hint_flag("attention_softmax_in_fp32", no_value, "softmax is fp32"),
    hint_flag("accumulate_allreduce_grads_in_fp32", no_value, "gradients are added up in fp32"),
    hint_flag("use_distributed_optimizer",
              no_value,
              "--zero_stage, or the configuration, shards the optimizer's states"),
    hint_flag("overlap_grad_reduce", no_value, reason::overlapped),
    hint_flag("overlap_param_gather", no_value, reason::overlapped),
    hint_flag("no_async_tensor_model_parallel_allreduce", no_value, reason::overlapped),
    hint_flag("recompute_activations", no_value, "cheap activations are always recomputed"),
    refused_flag("recompute_granularity", "KIND", "use --gradient_checkpointing", "selective"),
    hint_flag("recompute_method", "NAME", "every block is checkpointed by itself"),
    hint_flag("recompute_num_layers", "N", "every block is checkpointed by itself"),
    stated_flag("vocab_size", "N", "tokens of the vocabulary"),
    stated_flag("ffn_hidden_size", "N", "width of the MLP"),
    stated_flag("kv_channels", "N", "features of a head"),
    stated_flag("num_query_groups", "N", "heads of keys and values"),
    stated_flag("group_query_attention", no_value, "heads share keys and values"),
    stated_flag("swiglu", no_value, "the MLP is a SwiGLU"),
    stated_flag("normalization", "NAME", "LayerNorm or RMSNorm"),
    also(stated_flag("norm_epsilon", "X", "added to the variance"), "layernorm_epsilon"),
    stated_flag("disable_bias_linear", no_value, "linear layers have no biases"),
    stated_flag("add_qkv_bias", no_value, "queries, keys and values have biases"),
    stated_flag("untie_embeddings_and_output_weights", no_value, "the head has its own weights"),
    stated_flag("position_embedding_type", "NAME", "learned_absolute, rope or relative"),
    stated_flag("use_rotary_position_embeddings", no_value, "positions are rotary"),
    stated_flag("no_position_embedding", no_value, "positions are not learned"),
    stated_flag("rotary_base", "N", "of the rotary frequencies"),
    stated_flag("rotary_percent", "X", "the part of a head that turns"),
    refused_flag("num_experts", "N", "models with experts are not implemented"),
    hint_flag("make_vocab_size_divisible_by", "N", "the vocabulary is the model's own"),
    told_by(refused_flag("train_samples", "N", "give --max_steps N"), tell_train_samples),
    refused_flag("lr_warmup_samples", "N", reason::schedule_samples, "0"),
    refused_flag("lr_decay_samples", "N", reason::schedule_samples),
    refused_flag("initial_loss_scale", "X", reason::loss_scale),
    refused_flag("min_loss_scale", "X", reason::loss_scale),
    refused_flag("hysteresis", "N", reason::loss_scale),
    refused_flag(
        "finetune", no_value, "give the weights alone as --model_name_or_path DIR/checkpoint-N"),
    refused_flag("no_save_optim", no_value, "checkpoints always hold what resuming needs"),
    hint_flag("no_save_rng", no_value, "random numbers are functions of the seed and the step"),
    hint_flag("async_save", no_value, "checkpoints are written beside training"),
    hint_flag("ckpt_format", "NAME", "there is one format of checkpoints"),
    hint_flag("use_checkpoint_args", no_value, "a checkpoint of another model is refused"),
    hint_flag("override_opt_param_scheduler", no_value, "the schedule is this run's"),
    hint_flag("data_cache_path", "DIR", reason::mapped),
    hint_flag("no_create_attention_mask_in_dataloader", no_value, reason::attention),
    hint_flag("use_mpi", no_value, "ranks are found without MPI, or by the launcher"),
    hint_flag("distributed_timeout_minutes", "N", "use the launch option --timeout"),
    hint_flag("tensorboard_dir", "DIR", reason::quiet),
    hint_flag("tensorboard_queue_size", "N", reason::quiet),
    hint_flag("log_timers_to_tensorboard", no_value, reason::quiet),
    hint_flag("log_batch_size_to_tensorboard", no_value, reason::quiet),
    hint_flag("log_validation_ppl_to_tensorboard", no_value, reason::quiet),
    hint_flag("log_memory_to_tensorboard", no_value, reason::quiet),
    hint_flag("log_throughput", no_value, reason::quiet),
    hint_flag("timing_log_level", "N", reason::quiet),
    also(hint_flag("use_wandb", no_value, reason::no_hub), "wandb_log"),
    hint_flag("wandb_project", "NAME", reason::no_hub),
    also(hint_flag("wandb_name", "NAME", reason::no_hub), "wandb_exp_name|wandb_run_name"),
    also(hint_flag("wandb_entity", "NAME", reason::no_hub), "wandb_org"),
    hint_flag("wandb_group", "NAME", reason::no_hub),
    hint_flag("wandb_save_dir", "DIR", reason::no_hub),
};

// accelerate's launcher, whose options apply to the run.
const std::array accelerate{
    told_by(refused_flag("offload_optimizer_device", "none", reason::offloaded, "none"),
            tell_offload_optimizer),
    told_by(refused_flag("offload_param_device", "none", reason::offloaded, "none"),
            tell_offload_param),
    refused_flag("offload_optimizer_nvme_path",
                 "DIR",
                 "use zero_optimization.offload_optimizer.nvme_path of the configuration"),
    refused_flag("offload_param_nvme_path",
                 "DIR",
                 "use zero_optimization.offload_param.nvme_path of the configuration"),
    always_told(hint_flag(
        "zero3_init_flag", no_value, "every rank makes or reads only its share of the weights")),
    always_told(
        hint_flag("zero3_save_16bit_model", no_value, "model.safetensors is always written")),
    refused_flag(
        "config_file", "FILE", "use --config FILE for a file of options; accelerate's is not read"),
};

// TRL, FastChat, LLaMA-Factory, DeepSpeed-Chat, swift, OpenRLHF, open-instruct and ChatGLM.
const std::array fine_tuning{
    told_by(refused_flag("dataset", "NAME", reason::data_sets), tell_data_sets),
    also(several(told_by(refused_flag("dataset_mixer_list", "NAME X", reason::data_sets),
                         tell_data_sets)),
         "dataset_mixer"),
    kept_in(&TrainOptions::prompt_key,
            also(told_by(refused_flag("prompt_column", "KEY", reason::renamed, "prompt"),
                         tell_prompt_key),
                 "input_column_name")),
    kept_in(&TrainOptions::completion_key,
            also(told_by(refused_flag("response_column", "KEY", reason::renamed, "completion"),
                         tell_completion_key),
                 "output_column_name")),
    kept_in(&TrainOptions::prompt_key,
            told_by(refused_flag("input_key", "KEY", reason::renamed, "prompt|messages"),
                    tell_prompt_key)),
    kept_in(&TrainOptions::completion_key,
            told_by(refused_flag("output_key", "KEY", reason::renamed, "completion"),
                    tell_completion_key)),
    hint_flag("apply_chat_template", no_value, reason::chat_template),
    always_told(hint_flag("enable_thinking", no_value, reason::chat_template)),
    told_by(refused_flag("dataset_dir", "DIR", reason::data_sets), tell_data_sets),
    told_by(refused_flag("data_split", "A,B,C", "stages are not implemented"), tell_data_split),
    also(hint_flag("dataset_num_proc", "N", "there is nothing to preprocess"),
         "dataset_batch_size"),
    told_by(refused_flag("dataset_kwargs", "JSON", reason::data_sets, "{}"), tell_data_sets),
    refused_flag("eos_token",
                 "TEXT",
                 "leave it out: the end-of-text token is the eos_token of the tokenizer's "
                 "tokenizer_config.json; for another one, change it there"),
    negatable(hint_flag("add_eos_token",
                        no_value,
                        "the end-of-text token ends every record of JSON lines",
                        "true")),
    hint_flag("pad_token", "TEXT", "padding is never learned, whatever its token"),
    refused_flag("response_template", "TEXT", reason::answers),
    refused_flag("instruction_template", "TEXT", reason::answers),
    also(refused_flag("train_on_inputs", no_value, reason::answers, "false"), "train_on_prompt"),
    refused_flag("mask_history", no_value, "all answers of a conversation are learned", "false"),
    refused_flag("chat_template_path",
                 "FILE",
                 "the chat template is that of the model's directory; put it there as "
                 "chat_template.jinja"),
    one_of(hint_flag("packing_strategy", "NAME", "records are packed in their order"),
           "bfd|bfd_split|ffd|wrapped"),
    refused_flag("truncation_mode", "NAME", reason::cut, "keep_start"),
    also(refused_flag("truncation_strategy", "NAME", reason::cut, "right"), "truncation_side"),
    hint_flag("padding_side",
              "SIDE",
              "padding is behind the tokens of a sample, and never learned",
              "right"),
    hint_flag("padding_free", no_value, "--packing leaves hardly any padding, and is the default"),
    also(refused_flag(
             "max_prompt_length", "N", "prompt and completion are cut together, by --block_size"),
         "max_completion_length"),
    refused_flag("loss_type", "NAME", "the loss is the cross-entropy", "nll"),
    kept_in(&TrainOptions::assistant_only_loss,
            always_told(hint_flag("assistant_only_loss",
                                  no_value,
                                  "only the answers of conversations are learned; of plain text, "
                                  "every token"))),
    kept_in(&TrainOptions::completion_only_loss,
            always_told(
                hint_flag("completion_only_loss",
                          no_value,
                          "only completions of prompts are learned; of plain text, every token"))),
    hint_flag("use_deepspeed", no_value, "--deepspeed names the configuration"),
    also(refused_flag("ds_config", "FILE", "use --deepspeed FILE"),
         "ds_config_file|ds_config_path|deepspeed_config_path"),
    refused_flag("dataset_text_field", "KEY", "use --text_column KEY", "text"),
    kept_in(&TrainOptions::stage,
            one_of(hint_flag("stage", "NAME", "the records say what is learned"), "pt|sft")),
    hint_flag("template", "NAME", reason::chat_template),
    optional_value(hint_flag("version", "NAME", reason::chat_template)),
    hint_flag("lazy_preprocess", no_value, "there is nothing to preprocess"),
    optional_value(hint_flag("flash_attn", "NAME", reason::attention)),
    also(hint_flag("use_flash_attn", no_value, reason::attention),
         "use_flash_attention|use_flash_attention_2"),
    also(hint_flag("attn_implementation", "NAME", reason::attention), "attn_impl"),
    hint_flag("plot_loss", no_value, reason::quiet),
    hint_flag("with_tracking", no_value, reason::quiet),
    hint_flag("add_version", no_value, "--output_dir is used as it is typed"),
    hint_flag("use_unsloth", no_value, reason::kernels),
    also(hint_flag("print_loss", no_value, reason::quiet), "enable_tensorboard"),
    also(told_by(refused_flag("finetuning_type", "NAME", reason::lora, "full"),
                 tell_finetuning_type),
         "train_type|tuner_type"),
    refused_flag("shift_attn", no_value, reason::unbuilt),
    refused_flag("quantization_bit", "N", reason::quantized),
    refused_flag("pure_bf16",
                 no_value,
                 "use --bf16, with fp32 master weights; for bf16 ones put \"bf16\": {\"enabled\": "
                 "true, \"bf16_master_weights_and_grads\": true} into the configuration"),
    also(refused_flag("use_peft", no_value, reason::lora),
         "use_lora|use_qlora|q_lora|use_dora|use_rslora"),
    also(refused_flag("lora_r", "N", reason::lora, "0"), "lora_rank|lora_dim"),
    refused_flag("lora_alpha", "X", reason::lora),
    refused_flag("lora_dropout", "X", reason::lora),
    several(also(refused_flag("lora_target_modules", "NAME", reason::lora),
                 "lora_target|lora_module_name")),
    also(refused_flag("load_in_8bit", no_value, reason::quantized), "load_in_4bit"),
    refused_flag("offload",
                 no_value,
                 "use zero_optimization.offload_optimizer and offload_param of the configuration"),
};

}  // namespace

std::span<const FlagRow> foreign_flags() {
  static const std::vector<FlagRow> flags = [] {
    std::vector<FlagRow> all(hugging_face.begin(), hugging_face.end());
    all.insert(all.end(), megatron.begin(), megatron.end());
    all.insert(all.end(), accelerate.begin(), accelerate.end());
    all.insert(all.end(), fine_tuning.begin(), fine_tuning.end());
    return all;
  }();
  return flags;
}

}  // namespace dstrain::config
