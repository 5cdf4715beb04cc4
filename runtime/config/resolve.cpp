#include "runtime/config/resolve.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/config/choice.h"
#include "runtime/config/schedule_json.h"
#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

void resolve_clipping(SettingsBuilder& builder) {
  constexpr std::string_view path = "gradient_clipping";
  constexpr double deepspeed_default = 1.0;
  builder.settings().gradient_clipping =
      builder.pick(path, builder.options().max_grad_norm, deepspeed_default);
}

/// DeepSpeed sums the gradients of the ranks' mean losses instead of averaging them.
void resolve_sums(SettingsBuilder& builder) {
  constexpr std::string_view path = "gradient_allreduce_op";
  TrainSettings& settings = builder.settings();
  const std::string op = builder.pick(path, "mean");
  settings.sums_gradients = lower_case(op) == "sum";
  if (settings.sums_gradients && settings.zero.stage == 3) {
    builder.add_problem(path, "\"sum\" is refused at stage 3, as DeepSpeed does");
  }
}

void resolve_activations(SettingsBuilder& builder) {
  constexpr std::string_view on_host = "activation_checkpointing.cpu_checkpointing";
  TrainSettings& settings = builder.settings();
  settings.gradient_checkpointing = builder.options().gradient_checkpointing.value;
  settings.cpu_checkpointing = builder.pick(on_host, false);
  if (settings.cpu_checkpointing && !settings.gradient_checkpointing) {
    builder.add_problem(on_host, "needs --gradient_checkpointing, whose activations it moves");
  }
}

void resolve_model(SettingsBuilder& builder) {
  ModelSettings& model = builder.settings().model;
  model.directory = builder.options().model_name_or_path.value;
  model.config = builder.options().config_name.value;
  model.in_splits = builder.options().tiled_linear_in_splits.value;
  const struct {
    const Flag<std::int64_t>& flag;
    std::string_view name;
  } sizes[] = {{builder.options().num_layers, "num_hidden_layers"},
               {builder.options().hidden_size, "hidden_size"},
               {builder.options().num_attention_heads, "num_attention_heads"},
               {builder.options().max_position_embeddings, "max_position_embeddings"}};
  for (const auto& [flag, name] : sizes) {
    if (!flag.typed()) continue;
    if (model.config.empty()) model.config = "gpt2";
    model.overrides += fmt::format("{}{}={}", model.overrides.empty() ? "" : ",", name, flag.value);
  }
  model.statements = builder.options().statements;
  const struct {
    const Flag<double>& flag;
    const char* option;
  } rates[] = {{builder.options().attention_dropout, "attention_dropout"},
               {builder.options().hidden_dropout, "hidden_dropout"},
               {builder.options().init_method_std, "init_method_std"}};
  for (const auto& [flag, option] : rates) {
    if (!flag.typed()) continue;
    model.statements.push_back({option, flag.typed_as, fmt::format("{}", flag.value)});
  }
  const std::string& more = builder.options().config_overrides.value;
  if (!more.empty()) model.overrides += (model.overrides.empty() ? "" : ",") + more;
}

/// Returns a number of steps; a fraction of all steps is at least one step.
Cadence cadence(const SettingsBuilder& builder, const std::string& strategy, double steps) {
  if (strategy == "epoch") return {Cadence::Unit::epochs};
  if (strategy != "steps" || steps == 0) return {};
  if (steps < 1)
    steps = std::ceil(steps * static_cast<double>(builder.training_steps().value_or(0)));
  return {Cadence::Unit::steps, std::max<std::int64_t>(1, static_cast<std::int64_t>(steps))};
}

void resolve_checkpoint(SettingsBuilder& builder) {
  const std::string from = resume_source(builder.options());
  const std::string& strategy = builder.options().save_strategy.value;
  builder.settings().checkpoint = {
      .cadence = cadence(builder, strategy, builder.options().save_steps.value),
      .only_better = strategy == "best",
      .save_total_limit = builder.options().save_total_limit.value,
      .resume_from = from == "true" ? "latest" : from,
      .ignore_data_skip = builder.options().ignore_data_skip.value,
      .node_local = builder.pick("checkpoint.use_node_local_storage",
                                 builder.options().save_on_each_node, false),
      .whole_model =
          builder.pick("zero_optimization.stage3_gather_16bit_weights_on_model_save", false)};
  if (builder.settings().checkpoint.node_local && builder.options().save_total_limit.value > 0) {
    builder.add_problem("checkpoint.use_node_local_storage",
                        "excludes --save_total_limit, because no node sees whether a checkpoint is "
                        "whole on all nodes; leave out one of them");
  }
}

void resolve_evaluation(SettingsBuilder& builder) {
  const std::int64_t typed = builder.options().per_device_eval_batch_size.value;
  builder.settings().evaluation = {
      .enabled = evaluates(builder.options()),
      .cadence = cadence(builder, eval_strategy(builder.options()), eval_steps(builder.options())),
      .batch_size =
          typed > 0 && evaluates(builder.options()) ? typed : builder.settings().micro_batch_size,
      .tracks_best = tracks_best(builder.options()),
      .greater_is_better = builder.options().greater_is_better.value,
      .loads_best = builder.options().load_best_model_at_end.value};
}

/// If attention stops at document borders, positions restart there; otherwise learned positions
/// would reveal how much hidden text comes before.
bool separates_documents(const TrainOptions& options) {
  if (options.reset_position_ids.value && !options.reset_attention_mask.value) {
    fail(
        ErrorCode::usage,
        "--reset_position_ids: add --reset_attention_mask; positions restart where attention does");
  }
  return options.reset_attention_mask.value;
}

void resolve_data(SettingsBuilder& builder) {
  const Flag<std::int64_t>& seed =
      builder.options().data_seed.typed() ? builder.options().data_seed : builder.options().seed;
  builder.settings().data = {
      .train_files = builder.options().train_file.value,
      .validation_files = builder.options().validation_file.value,
      .questions = builder.options().questions,
      .split = split_weights(builder.options().split.value),
      .max_train_samples = builder.options().max_train_samples.value,
      .max_eval_samples = builder.options().max_eval_samples.value,
      .tokenizer = builder.options().tokenizer.value,
      .tokenizer_given = builder.options().tokenizer.typed(),
      .block_size = builder.options().block_size.value,
      .source_length = builder.options().max_source_length.value,
      .target_length = builder.options().max_target_length.value,
      .documents = separates_documents(builder.options()),
      .text_column = builder.options().text_column.value,
      .chat_date = parse_date(builder.options().chat_date.value),
      .role_names = parse_role_names(builder.options().role_names.value).value(),
      .packing = builder.options().packing.value,
      .shuffle = !builder.options().no_shuffle.value,
      .drop_last =
          builder.pick("dataloader_drop_last", builder.options().dataloader_drop_last, false),
      .seed = static_cast<std::uint64_t>(seed.value)};
}

void resolve_rest(SettingsBuilder& builder) {
  TrainSettings& settings = builder.settings();
  settings.trains = trains(builder.options());
  const Flag<bool>& tune = builder.options().tune_matmuls;
  const Flag<std::string>& profile = builder.options().profile;
  settings.tune_matmuls = tune.value && settings.trains;
  for (const std::string& flag : {tune.value ? tune.typed_as : "", profile.typed_as}) {
    if (flag.empty() || settings.trains) continue;
    builder.problems().warn({}, flag, "has no effect: no step is taken");
  }
  const Flag<std::string>& random = builder.options().config_name;
  if (!settings.trains && random.typed() && !builder.options().resume_from_checkpoint.typed()) {
    builder.problems().warn({}, random.typed_as,
                            "the weights that are evaluated are random; name a trained model with "
                            "--model_name_or_path");
  }
  settings.output = {.directory = builder.options().output_dir.value,
                     .overwrite = builder.options().overwrite_output_dir.value,
                     .logging = cadence(builder, builder.options().logging_strategy.value,
                                        builder.options().logging_steps.value),
                     .profile = settings.trains ? profile.value : ""};
  settings.prints_logged_steps =
      builder.options().logging_steps.typed() || builder.options().logging_strategy.typed();
  settings.steps = builder.training_steps().value_or(0);
  settings.seed = static_cast<std::uint64_t>(builder.options().seed.value);
  settings.steps_per_print = builder.config().integer("steps_per_print").value_or(0);
  const bool given = builder.config().integer("steps_per_print").has_value();
  builder.decided_json("steps_per_print",
                       given ? fmt::format("{}", settings.steps_per_print) : "null",
                       given ? "file" : "default");
}

void resolve_aio(SettingsBuilder& builder) {
  AioSettings& aio = builder.settings().aio;
  const std::string in = "aio.";
  aio.block_size = builder.pick(in + "block_size", -1, aio.block_size);
  aio.queue_depth = static_cast<int>(builder.pick(in + "queue_depth", -1, aio.queue_depth));
  aio.threads = static_cast<int>(builder.pick(in + "intra_op_parallelism", -1, aio.threads));
  aio.single_submit = builder.pick(in + "single_submit", aio.single_submit);
  aio.overlap_events = builder.pick(in + "overlap_events", aio.overlap_events);
  constexpr Bytes page = 4096;
  if (aio.block_size % page != 0) {
    builder.add_problem(in + "block_size",
                        fmt::format("must be a multiple of {}, got {}", page, aio.block_size));
  }
}

using Json = nlohmann::ordered_json;

/// "a.b" -> /a/b
Json::json_pointer pointer_to(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return Json::json_pointer("/" + path);
}

}  // namespace

Resolved resolve_config(const TrainOptions& options,
                        const DsConfig& config,
                        const Context& context) {
  SettingsBuilder builder(options, config, context);
  resolve_batch(builder);
  resolve_data(builder);
  resolve_clipping(builder);
  resolve_precision(builder);
  resolve_optimizer(builder);
  resolve_state_precision(builder);
  resolve_schedule(builder);
  resolve_zero(builder);
  resolve_sums(builder);
  resolve_activations(builder);
  resolve_model(builder);
  resolve_evaluation(builder);
  resolve_checkpoint(builder);
  resolve_aio(builder);
  resolve_rest(builder);
  return builder.finish();
}

Resolved resolve(const TrainOptions& options, const Context& context) {
  const DsConfig config = DsConfig::of(options);
  Resolved resolved = resolve_config(options, config, context);
  if (context.world_size > 0) {
    check_accelerate_environment(resolved.settings, !config.file().empty());
  }
  return resolved;
}

std::string report_json(const Resolved& resolved) {
  Json effective = Json::object();
  Json origin = Json::object();
  for (const EffectiveValue& value : resolved.effective) {
    effective[pointer_to(value.path)] = Json::parse(value.json);
    origin[value.path] = value.origin;
  }
  const Json report = {{"effective", std::move(effective)},
                       {"origin", std::move(origin)},
                       {"schedule", Json::parse(schedule_json(resolved.settings.schedule))},
                       {"warnings", resolved.settings.warnings}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dstrain::config
