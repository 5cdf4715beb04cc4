#include "runtime/config/resolver.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace dstrain::config {

Resolver::Resolver(const TrainOptions& options, const DsConfig& config, const Context& context)
    : options_(options), config_(config), context_(context), problems_(config.problems()) {}

Resolved Resolver::run() {
  resolve_batch();
  resolve_clipping();
  resolve_precision();
  resolve_optimizer();
  resolve_schedule();
  resolve_zero();
  resolve_offload();
  resolve_activations();
  resolve_model();
  resolve_data();
  resolve_evaluation();
  resolve_checkpoint();
  resolve_aio();
  resolve_rest();
  problems_.throw_if_any();
  result_.settings.ds_config_text = config_.text();
  result_.settings.warnings = options_.warnings;
  for (const std::string& line : problems_.warnings()) result_.settings.warnings.push_back(line);
  return std::move(result_);
}

void Resolver::decided_json(std::string_view path, std::string json, const std::string& origin) {
  result_.effective.push_back({std::string(path), std::move(json), origin});
}

void Resolver::disagree(std::string_view path,
                        const std::string& given,
                        const std::string& flag,
                        const std::string& flag_value) {
  problems_.add(config_.position(path), path,
                fmt::format("is {} here, but {} is {} on the command line; give one of them, or "
                            "\"auto\" here",
                            given, flag, flag_value));
}

template <class T>
T Resolver::choose(std::string_view path,
                   const std::optional<T>& given,
                   const Flag<T>& flag,
                   T fallback) {
  check_agreement(path, given, flag);
  T value = fallback;
  std::string origin = "default";
  if (given) {
    value = *given;
    origin = "file";
  } else if (flag.typed()) {
    value = flag.value;
    origin = "flag " + flag.typed_as;
  } else if (config_.is_auto(path)) {
    value = flag.value;
  }
  decided(path, value, origin);
  return value;
}

double Resolver::pick(std::string_view path, const Flag<double>& flag, double fallback) {
  return choose(path, config_.number(path), flag, fallback);
}

bool Resolver::pick(std::string_view path, const Flag<bool>& flag, bool fallback) {
  return choose(path, config_.boolean(path), flag, fallback);
}

std::int64_t Resolver::pick(std::string_view path, std::int64_t automatic, std::int64_t fallback) {
  const std::optional<std::int64_t> given = config_.integer(path);
  const bool computed = config_.is_auto(path) && automatic >= 0;
  const std::int64_t value = given ? *given : computed ? automatic : fallback;
  decided(path, value, given ? "file" : computed ? "derived" : "default");
  return value;
}

bool Resolver::pick(std::string_view path, bool fallback) {
  const std::optional<bool> given = config_.boolean(path);
  const bool value = given.value_or(fallback);
  decided(path, value, given ? "file" : "default");
  return value;
}

double Resolver::pick(std::string_view path, double fallback) {
  const std::optional<double> given = config_.number(path);
  decided(path, given.value_or(fallback), given ? "file" : "default");
  return given.value_or(fallback);
}

std::string Resolver::pick(std::string_view path, const char* fallback) {
  const std::optional<std::string> given = config_.text_of(path);
  decided_json(path, nlohmann::json(given.value_or(fallback)).dump(), given ? "file" : "default");
  return given.value_or(fallback);
}

void Resolver::resolve_clipping() {
  constexpr std::string_view path = "gradient_clipping";
  constexpr double deepspeed_default = 1.0;
  result_.settings.gradient_clipping = pick(path, options_.max_grad_norm, deepspeed_default);
}

void Resolver::resolve_precision() {
  constexpr std::string_view enabled = "bf16.enabled";
  constexpr std::string_view parameters = "data_types.param_dtype";
  if (!pick(enabled, options_.bf16, false)) return;
  result_.settings.dtype = DType::bf16;
  if (config_.text_of(parameters)) {  // "fp32", as nothing else is accepted
    problems_.add(config_.position(parameters), parameters,
                  "is \"fp32\", but bf16 is enabled; leave out one of them");
  }
}

bool Resolver::lacks_stage(int lowest) const {
  return result_.settings.zero.stage < lowest && !config_.is_faulty("zero_optimization.stage");
}

void Resolver::warn_stage(std::string_view path, int lowest_stage, std::string_view meaning) {
  if (!lacks_stage(lowest_stage) || !config_.has(path)) return;
  problems_.warn(
      config_.position(path), path,
      fmt::format("has no effect at stage {}: {}", result_.settings.zero.stage, meaning));
}

void Resolver::resolve_zero() {
  ZeroSettings& zero = result_.settings.zero;
  const std::int64_t hidden = context_.hidden;
  const std::int64_t squared = hidden > 0 ? hidden * hidden : -1;
  const std::int64_t tenfold = hidden > 0 ? 10 * hidden : -1;
  const std::string in = "zero_optimization.";
  zero.stage = static_cast<int>(
      choose(in + "stage", config_.integer(in + "stage"), options_.zero_stage, std::int64_t{0}));
  zero.reduce_bucket_numel = pick(in + "reduce_bucket_size", squared, 0);
  zero.persistence_threshold_numel =
      pick(in + "stage3_param_persistence_threshold", tenfold, zero.persistence_threshold_numel);
  zero.persistence_total_numel =
      pick(in + "stage3_model_persistence_threshold", -1, zero.persistence_total_numel);
  zero.overlap = pick(in + "overlap_comm", zero.stage == 3);  // DeepSpeed's default
  const std::int64_t most_of_squared = hidden > 0 ? squared * 9 / 10 : -1;
  zero.prefetch_numel =
      pick(in + "stage3_prefetch_bucket_size", most_of_squared, zero.prefetch_numel);
  zero.live_numel = pick(in + "stage3_max_live_parameters", -1, zero.live_numel);
  zero.reuse_numel = pick(in + "stage3_max_reuse_distance", -1, zero.reuse_numel);
  warn_stage(in + "reduce_bucket_size", 2, "gradients are reduced once per step");
  for (const char* key :
       {"stage3_param_persistence_threshold", "stage3_model_persistence_threshold",
        "stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance"}) {
    warn_stage(in + key, 3, "every rank has all parameters");
  }
}

void Resolver::resolve_activations() {
  constexpr std::string_view on_host = "activation_checkpointing.cpu_checkpointing";
  TrainSettings& settings = result_.settings;
  settings.gradient_checkpointing = options_.gradient_checkpointing.value;
  settings.cpu_checkpointing = pick(on_host, false);
  if (settings.cpu_checkpointing && !settings.gradient_checkpointing) {
    problems_.add(config_.position(on_host), on_host,
                  "needs --gradient_checkpointing: it moves what that keeps");
  }
}

void Resolver::resolve_model() {
  ModelSettings& model = result_.settings.model;
  model.directory = options_.model_name_or_path.value;
  model.config = options_.config_name.value;
  model.in_splits = options_.tiled_linear_in_splits.value;
  const struct {
    const Flag<std::int64_t>& flag;
    std::string_view name;
  } sizes[] = {{options_.num_layers, "n_layer"},
               {options_.hidden_size, "n_embd"},
               {options_.num_attention_heads, "n_head"},
               {options_.max_position_embeddings, "n_positions"}};
  for (const auto& [flag, name] : sizes) {
    if (!flag.typed()) continue;
    if (model.config.empty()) model.config = "gpt2";
    model.overrides += fmt::format("{}{}={}", model.overrides.empty() ? "" : ",", name, flag.value);
    if (("," + options_.config_overrides.value).find(fmt::format(",{}=", name)) !=
        std::string::npos) {
      problems_.add({}, flag.typed_as,
                    fmt::format("--config_overrides sets {} too; keep one of them", name));
    }
  }
  const std::string& more = options_.config_overrides.value;
  if (!more.empty()) model.overrides += (model.overrides.empty() ? "" : ",") + more;
}

/// A number of steps; of a part of all steps, at least one.
Cadence Resolver::cadence(const std::string& strategy, double steps) const {
  if (strategy == "epoch") return {Cadence::Unit::epochs};
  if (strategy != "steps" || steps == 0) return {};
  if (steps < 1) steps = std::ceil(steps * static_cast<double>(training_steps().value_or(0)));
  return {Cadence::Unit::steps, std::max<std::int64_t>(1, static_cast<std::int64_t>(steps))};
}

void Resolver::resolve_checkpoint() {
  const std::string from = resume_source(options_);
  const std::string& strategy = options_.save_strategy.value;
  result_.settings.checkpoint = {
      .cadence = cadence(strategy, options_.save_steps.value),
      .only_better = strategy == "best",
      .save_total_limit = options_.save_total_limit.value,
      .resume_from = from == "true" ? "latest" : from,
      .node_local = pick("checkpoint.use_node_local_storage", options_.save_on_each_node, false),
      .whole_model = pick("zero_optimization.stage3_gather_16bit_weights_on_model_save", false)};
  if (result_.settings.checkpoint.node_local && options_.save_total_limit.value > 0) {
    problems_.add(config_.position("checkpoint.use_node_local_storage"),
                  "checkpoint.use_node_local_storage",
                  "no node can tell whether a checkpoint is whole on all of them, as "
                  "--save_total_limit needs it; leave out one of them");
  }
}

void Resolver::resolve_evaluation() {
  const std::int64_t typed = options_.per_device_eval_batch_size.value;
  result_.settings.evaluation = {
      .enabled = evaluates(options_),
      .cadence = cadence(eval_strategy(options_), eval_steps(options_)),
      .batch_size = typed > 0 && evaluates(options_) ? typed : result_.settings.micro_batch_size,
      .tracks_best = tracks_best(options_),
      .greater_is_better = options_.greater_is_better.value,
      .loads_best = options_.load_best_model_at_end.value};
}

void Resolver::resolve_data() {
  const Flag<std::int64_t>& seed = options_.data_seed.typed() ? options_.data_seed : options_.seed;
  result_.settings.data = {.train_file = options_.train_file.value,
                           .validation_file = options_.validation_file.value,
                           .split = split_weights(options_.split.value),
                           .max_train_samples = options_.max_train_samples.value,
                           .max_eval_samples = options_.max_eval_samples.value,
                           .tokenizer = options_.tokenizer.value,
                           .tokenizer_given = options_.tokenizer.typed(),
                           .block_size = options_.block_size.value,
                           .shuffle = !options_.no_shuffle.value,
                           .seed = static_cast<std::uint64_t>(seed.value)};
}

void Resolver::resolve_rest() {
  TrainSettings& settings = result_.settings;
  settings.trains = trains(options_);
  if (options_.optim.typed() && !settings.optimizer.decoupled_decay) {
    disagree("optimizer.params.adam_w_mode", "false", options_.optim.typed_as,
             options_.optim.value);
  }
  settings.output = {
      .directory = options_.output_dir.value,
      .overwrite = options_.overwrite_output_dir.value,
      .logging = cadence(options_.logging_strategy.value, options_.logging_steps.value),
      .profile = options_.profile.value};
  settings.max_steps = std::max<std::int64_t>(0, options_.max_steps.value);
  settings.num_train_epochs = options_.num_train_epochs.value;
  settings.seed = static_cast<std::uint64_t>(options_.seed.value);
  settings.steps_per_print = config_.integer("steps_per_print").value_or(0);
  const bool given = config_.integer("steps_per_print").has_value();
  decided_json("steps_per_print", given ? fmt::format("{}", settings.steps_per_print) : "null",
               given ? "file" : "default");
}

Resolved resolve_config(const TrainOptions& options,
                        const DsConfig& config,
                        const Context& context) {
  return Resolver(options, config, context).run();
}

Resolved resolve(const TrainOptions& options, const Context& context) {
  const std::string file = ds_config_file(options);
  const DsConfig config = file.empty() ? DsConfig() : DsConfig::load(file);
  return resolve_config(options, config, context);
}

}  // namespace dstrain::config
