#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/data_files.h"
#include "runtime/config/model_statement.h"
#include "runtime/config/options_file.h"

namespace dstrain::config {

/// The value of a command-line option, and whether the user typed it. Only typed options can
/// contradict the configuration.
template <class T>
struct Flag {
  T value{};
  std::string typed_as;  ///< "--lr"; empty: not typed, `value` is the default
  [[nodiscard]] bool typed() const { return !typed_as.empty(); }
};

/// The options of `dstrain train`, with the defaults of Hugging Face's TrainingArguments.
struct TrainOptions {
  Flag<std::string> model_name_or_path;
  Flag<std::string> config_name;
  Flag<std::string> config_overrides;
  Flag<std::int64_t> num_layers, hidden_size, num_attention_heads, max_position_embeddings;
  Flag<double> attention_dropout, hidden_dropout, init_method_std;  ///< not typed: the model's own
  std::vector<ModelStatement> statements;  ///< to be checked against the model

  Flag<std::vector<DataFile>> train_file;
  Flag<std::vector<DataFile>> validation_file;
  Flag<std::string> split;                                 ///< "949,50,1": parts of each train_file
  Flag<std::int64_t> max_train_samples, max_eval_samples;  ///< 0: all
  Flag<std::int64_t> block_size;                           ///< 0: min(1024, the model's positions)
  Flag<std::int64_t> max_source_length, max_target_length;  ///< 0: 1024 and 128
  Flag<std::string> tokenizer{"byte", {}};
  Flag<std::string> text_column, role_names;  ///< of records; role_names as parse_role_names()
  Flag<std::string> chat_date;                ///< parse_date()
  Flag<bool> packing{true, {}};
  Flag<bool> reset_attention_mask, reset_position_ids;  ///< both or the first alone
  Flag<bool> no_shuffle;
  // TRL's and LLaMA-Factory's choice of labels. Here the records decide, and may contradict it.
  Flag<bool> assistant_only_loss, completion_only_loss;
  Flag<std::string> stage;                       ///< "pt" or "sft"
  Flag<std::string> prompt_key, completion_key;  ///< keys in the records of other programs
  Flag<bool> dataloader_drop_last;

  Flag<std::int64_t> max_steps{-1, {}};  ///< 0 or less: num_train_epochs decides
  Flag<double> num_train_epochs{3.0, {}};
  Flag<std::int64_t> per_device_train_batch_size{8, {}};
  Flag<std::int64_t> global_batch_size;  ///< 0: not given
  Flag<std::int64_t> gradient_accumulation_steps{1, {}};
  Flag<double> learning_rate{5e-5, {}};
  Flag<double> weight_decay;
  Flag<double> adam_beta1{0.9, {}};
  Flag<double> adam_beta2{0.999, {}};
  Flag<double> adam_epsilon{1e-8, {}};
  Flag<std::string> optim{"adamw_torch", {}};
  Flag<std::string> optimizer;  ///< Megatron's, translated to `optim`
  Flag<double> max_grad_norm{1.0, {}};
  Flag<std::string> lr_scheduler_type{"linear", {}};
  Flag<std::string> lr_decay_style;  ///< Megatron's, translated to `lr_scheduler_type`
  Flag<std::int64_t> lr_decay_iters;
  Flag<double> min_lr;
  Flag<double> warmup_steps;  ///< below 1: a fraction of all steps
  Flag<double> warmup_ratio;
  Flag<std::int64_t> seed{42, {}};
  Flag<std::int64_t> data_seed;

  Flag<bool> do_train, do_eval;
  Flag<std::string> eval_strategy{"no", {}};
  Flag<double> eval_steps;
  Flag<std::int64_t> per_device_eval_batch_size;  ///< 0: as in training
  Flag<bool> load_best_model_at_end;
  Flag<std::string> metric_for_best_model{"loss", {}};
  Flag<bool> greater_is_better;

  Flag<bool> bf16, fp16, tf32, tune_matmuls;
  Flag<std::string> precision;  ///< translated to `bf16` or `fp16`
  Flag<std::string> loss_scaler{"zero", {}};
  Flag<std::int64_t> max_skipped_steps;
  Flag<bool> gradient_checkpointing, disable_gradient_checkpointing;
  Flag<std::int64_t> tiled_linear_in_splits{1, {}};
  Flag<std::int64_t> zero_stage;

  Flag<std::string> output_dir;
  Flag<bool> overwrite_output_dir;
  Flag<std::string> logging_strategy{"steps", {}};
  Flag<double> logging_steps{10, {}};
  Flag<std::string> save_strategy{"steps", {}};
  Flag<double> save_steps{500, {}};
  Flag<std::int64_t> save_total_limit;
  Flag<bool> save_on_each_node;
  Flag<std::string> resume_from_checkpoint;  ///< a directory, latest, true or false
  Flag<bool> ignore_data_skip;
  Flag<std::string> load;  ///< the same, but ignored if it holds no checkpoint
  Flag<std::string> profile;

  Flag<std::string> deepspeed;  ///< a file, or "" if only the bare --deepspeed was typed
  Flag<std::string> deepspeed_config;

  // Of `evaluate`, which has no such options on the command line of `train`.
  bool inference = false;  ///< only what says how weights are kept counts of a configuration
  std::string questions;   ///< a file of multiple-choice questions; empty: none

  OptionPlaces places;                ///< of the options that a file of options has
  std::vector<std::string> warnings;  ///< one line for each typed option without effect
};

/// Parses the arguments after `train`. Throws Error{usage} with all problems, one line each:
/// unknown options (with the nearest known one), bad values, options that are not implemented, and
/// missing required options. Accesses no file but that of --config.
TrainOptions parse_train_options(std::span<const std::string> arguments);
/// The same where a file of options has been read.
TrainOptions parse_train_options(const ExpandedArguments& arguments);

/// The same, but does not require any option; for tools that inspect a configuration.
TrainOptions read_train_flags(std::span<const std::string> arguments);

/// Returns the value of each option ("--seed 42"), except paths, which may differ between nodes.
std::vector<std::string> option_values(const TrainOptions& options);

/// Whether the run takes steps: not if --do_eval was typed without --do_train.
bool trains(const TrainOptions& options);

/// Whether the run keeps track of the checkpoint with the best held-out loss.
bool tracks_best(const TrainOptions& options);

/// Returns when held-out data is evaluated besides the end: "no", "steps" or "epoch". --eval_steps
/// alone means steps.
std::string eval_strategy(const TrainOptions& options);

/// Returns the typed option that requires held-out data; empty: none.
std::string what_needs_held_out(const TrainOptions& options);

/// Whether there is held-out data, and whether it is evaluated.
bool has_held_out_data(const TrainOptions& options);
bool evaluates(const TrainOptions& options);

/// Returns the steps between evaluations for eval_strategy "steps": --eval_steps, else
/// --logging_steps.
double eval_steps(const TrainOptions& options);

/// Returns contradictions between the options for evaluation, logging and saving, by Hugging Face's
/// rules; one line each.
std::vector<std::string> strategy_problems(const TrainOptions& options);
/// Returns which of these have no effect or an unexpected one; one line each.
std::vector<std::string> strategy_warnings(const TrainOptions& options);

/// Checks that the run has the data that its options need. Adds errors to `problems` and options
/// without effect to options.warnings.
void check_data_options(TrainOptions& options, std::vector<std::string>& problems);

/// Returns the three weights of "949,50,1"; missing ones are 0. Empty if the text is invalid.
std::vector<double> split_weights(const std::string& text);

/// Returns the configuration file; empty if there is none. It may be JSON text instead of a path,
/// as for the Trainer, also if it was typed as base64, as for DeepSpeed.
std::string ds_config_file(const TrainOptions& options);
bool is_json_text(std::string_view ds_config);

/// Returns where the run resumes: --resume_from_checkpoint, else --load if it holds a checkpoint;
/// empty: it starts from the beginning.
std::string resume_source(const TrainOptions& options);
bool resumes(const TrainOptions& options);

/// Checks the files that the options name: data, model and configuration exist, and the output
/// directory is empty, may be overwritten, or is resumed from. Throws Error{usage} with all
/// problems. Call once per job, before any rank writes.
void check_train_paths(const TrainOptions& options);

/// Creates the output directory and checks that the run can write there and to the profile. Throws
/// Error{usage}. Call once per job, after all other checks.
void prepare_output_directory(const TrainOptions& options);

enum class HelpScope {
  everyday,  ///< `train --help`: what most runs need
  all,       ///< `train --help-all`: every option and name
};
std::string help_text(HelpScope scope);

}  // namespace dstrain::config
