#pragma once
#include <string>
#include <string_view>

#include "runtime/config/train_options.h"

namespace dstrain::config {

// What to type instead of another program's option, for the value that was typed; see
// FlagRow::told.

/// --dataset_name and similar options, with or without --train_file
std::string tell_data_sets(const std::string& value, const TrainOptions& options);
/// --validation_split_percentage 5
std::string tell_split_of_percentage(const std::string& value, const TrainOptions& options);
/// --val_size 0.1, or a number of records
std::string tell_split_of_size(const std::string& value, const TrainOptions& options);
/// --data_split 2,4,4
std::string tell_data_split(const std::string& value, const TrainOptions& options);
/// --lr_scheduler_kwargs '{"min_lr_rate": 0.1}'
std::string tell_scheduler_kwargs(const std::string& value, const TrainOptions& options);
/// --finetuning_type lora
std::string tell_finetuning_type(const std::string& value, const TrainOptions& options);

/// How to type the settings of accelerate's configuration here; accelerate_yaml is for YAML files.
inline constexpr std::string_view accelerate_options =
    "type its options: num_processes is --num_gpus, num_machines --num_nodes, mixed_precision "
    "train "
    "--bf16, zero_stage train --zero_stage, gradient_clipping train --max_grad_norm, and "
    "offloading "
    "is a part of train --deepspeed FILE";
inline constexpr std::string_view accelerate_yaml =
    "YAML is not read; type its options: num_processes is --num_gpus, num_machines --num_nodes, "
    "mixed_precision train --bf16, zero_stage train --zero_stage, gradient_clipping train "
    "--max_grad_norm, and offloading is a part of train --deepspeed FILE";

/// --fsdp "full_shard auto_wrap"
std::string tell_fsdp(const std::string& value, const TrainOptions& options);
/// --offload_optimizer_device cpu, --offload_param_device cpu, --adam_offload
std::string tell_offload_optimizer(const std::string& value, const TrainOptions& options);
std::string tell_offload_param(const std::string& value, const TrainOptions& options);
std::string tell_offloaded_optimizer(const std::string& value, const TrainOptions& options);
/// --config FILE
/// --dropout 0.1
std::string tell_dropout(const std::string& value, const TrainOptions& options);
/// --max_eval_steps 5
std::string tell_max_eval_steps(const std::string& value, const TrainOptions& options);
/// --prompt_column KEY, --response_column KEY
std::string tell_prompt_key(const std::string& value, const TrainOptions& options);
std::string tell_completion_key(const std::string& value, const TrainOptions& options);
/// Both keys in one command.
std::string tell_keys(const TrainOptions& options);

/// --train_samples 100000
std::string tell_train_samples(const std::string& value, const TrainOptions& options);

/// Returns the ZeRO stage that another program's name means: "zero3", "default-zero2"; -1: none.
int zero_stage_named(std::string_view name);

/// Returns the scheduler section for a cosine that ends at `ratio` of the rate after `steps`, a
/// number or "auto" in quotes.
std::string cosine_section(double ratio, std::string_view steps = "\"auto\"");

}  // namespace dstrain::config
