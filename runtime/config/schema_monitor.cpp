#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::array monitor_table{
    group("tensorboard"),
    off_only("tensorboard.enabled",
             boolean,
             "false",
             "the TensorBoard monitor (metrics.jsonl has its values)"),
    inert("tensorboard.output_path", text, ""),
    inert("tensorboard.job_name", text, "DeepSpeedJobName"),
    group("csv_monitor"),
    off_only(
        "csv_monitor.enabled", boolean, "false", "the CSV monitor (metrics.jsonl has its values)"),
    inert("csv_monitor.output_path", text, ""),
    inert("csv_monitor.job_name", text, "DeepSpeedJobName"),
    group("wandb"),
    off_only("wandb.enabled",
             boolean,
             "false",
             "the Weights & Biases monitor (metrics.jsonl has its values)"),
    inert("wandb.group", text, "null"),
    inert("wandb.team", text, "null"),
    inert("wandb.project", text, "deepspeed"),
    group("comet"),
    off_only("comet.enabled", boolean, "false", "the Comet monitor (metrics.jsonl has its values)"),
    inert("comet.samples_log_interval", integer, "100"),
    inert("comet.project", text, "null"),
    inert("comet.workspace", text, "null"),
    inert("comet.api_key", text, "null"),
    inert("comet.experiment_name", text, "null"),
    inert("comet.experiment_key", text, "null"),
    inert("comet.online", boolean, "null"),
    inert("comet.mode", text, "null"),
    group("comms_logger"),
    off_only("comms_logger.enabled",
             boolean,
             "false",
             "the communication log (--profile FILE shows the times)"),
    inert("comms_logger.prof_all", boolean, "true"),
    inert("comms_logger.prof_ops", list, "[]"),
    inert("comms_logger.verbose", boolean, "false"),
    inert("comms_logger.debug", boolean, "false"),
    group("flops_profiler"),
    off_only("flops_profiler.enabled",
             boolean,
             "false",
             "the profiler (metrics.jsonl has model_tflops)"),
    inert("flops_profiler.recompute_fwd_factor", number, "0.0"),
    inert("flops_profiler.profile_step", integer, "1"),
    inert("flops_profiler.module_depth", integer, "-1"),
    inert("flops_profiler.top_modules", integer, "1"),
    inert("flops_profiler.detailed", boolean, "true"),
    inert("flops_profiler.output_file", text, "null"),
    group("eigenvalue"),
    off_only("eigenvalue.enabled", boolean, "false", "the computation of eigenvalues"),
    inert("eigenvalue.verbose", boolean, "false"),
    inert("eigenvalue.max_iter", integer, "100"),
    inert("eigenvalue.tol", number, "1e-2"),
    inert("eigenvalue.stability", number, "1e-6"),
    inert("eigenvalue.gas_boundary_resolution", integer, "1"),
    inert("eigenvalue.layer_name", text, "bert.encoder.layer"),
    inert("eigenvalue.layer_num", integer, "0"),
    group("autotuning"),
    off_only("autotuning.enabled", boolean, "false", "autotuning (dstrain plan tells what fits)"),
    inert("autotuning.fast", boolean, "true"),
    inert("autotuning.results_dir", text, "autotuning_results"),
    inert("autotuning.exps_dir", text, "autotuning_exps"),
    inert("autotuning.overwrite", boolean, "true"),
    inert("autotuning.start_profile_step", integer, "3"),
    inert("autotuning.end_profile_step", integer, "5"),
    inert("autotuning.metric", text, "throughput").one_of("throughput|latency|flops"),
    inert("autotuning.tuner_type", text, "gridsearch").one_of("gridsearch|model_based|random"),
    inert("autotuning.tuner_early_stopping", integer, "5"),
    inert("autotuning.tuner_num_trials", integer, "50"),
    inert("autotuning.max_train_batch_size", integer, "null"),
    inert("autotuning.min_train_batch_size", integer, "1"),
    inert("autotuning.max_train_micro_batch_size_per_gpu", integer, "1024"),
    inert("autotuning.min_train_micro_batch_size_per_gpu", integer, "1"),
    inert("autotuning.num_tuning_micro_batch_sizes", integer, "3"),
    inert("autotuning.mp_size", integer, "1"),
    inert("autotuning.arg_mappings", any, "null"),
    inert("autotuning.metric_path", text, "null"),
    inert("autotuning.model_info_path", text, "null"),
    inert("autotuning.model_info", section, ""),
    inert("autotuning.model_info.profile", boolean, "false"),
    inert("autotuning.model_info.num_params", integer, "null"),
    inert("autotuning.model_info.hidden_size", integer, "null"),
    inert("autotuning.model_info.num_layers", integer, "null"),
};

}  // namespace

std::span<const Key> monitor_keys() {
  return monitor_table;
}

}  // namespace dstrain::config
