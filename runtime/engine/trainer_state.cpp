#include "runtime/engine/trainer_state.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"
#include "runtime/config/schedule_json.h"

namespace dstrain::engine {
namespace {

constexpr std::int64_t version = 3;
/// Written as long as it says all: older versions of dstrain would go on with other samples once
/// the data have begun anew.
constexpr std::int64_t version_without_data_start = 2;

using Json = nlohmann::ordered_json;

Json json_of(double value) {
  return value;
}
Json json_of(bool value) {
  return value;
}
Json json_of(const rules::Betas& betas) {
  return {betas.beta1, betas.beta2};
}

Json optimizer_json(const config::OptimizerSettings& optimizer, double learning_rate) {
  Json json{{"type", rules::type_of(optimizer.rule)}, {"lr", learning_rate}};
  rules::for_each_parameter(optimizer.rule, [&json](std::string_view key, const auto& value) {
    json[std::string(key)] = json_of(value);
  });
  if (rules::weight_decay(optimizer.rule) > 0 && !optimizer.decays_all) {
    json["no_decay"] = "biases and norm weights";
  }
  return json;
}

Json scaler_json(const std::optional<optim::LossScaler::State>& state) {
  if (!state) return {};
  return {{"scale", state->scale},
          {"steps", state->steps},
          {"last_overflow", state->last_overflow},
          {"hysteresis", state->hysteresis}};
}

std::optional<optim::LossScaler::State> read_scaler(const nlohmann::json& json) {
  if (!json.contains("loss_scaler") || json.at("loss_scaler").is_null()) return std::nullopt;
  const nlohmann::json& scaler = json.at("loss_scaler");
  optim::LossScaler::State state;
  scaler.at("scale").get_to(state.scale);
  scaler.at("steps").get_to(state.steps);
  scaler.at("last_overflow").get_to(state.last_overflow);
  scaler.at("hysteresis").get_to(state.hysteresis);
  return state;
}

/// null for what is not known.
template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
std::optional<T> read_optional(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

Json data_json(const TrainerState& state) {
  const TrainingData& data = state.data;
  return {{"train_file", data.file},
          {"bytes", data.bytes},
          {"digest", data.digest},
          {"samples", data.samples},
          {"mixture", data.mixture},
          {"text_encoder", data.text_encoder},
          {"packing", optional_json(data.packing)},
          {"record_options", optional_json(data.record_options)},
          {"split", optional_json(data.split)},
          {"max_train_samples", optional_json(data.max_samples)},
          {"shuffle", state.shuffle},
          {"dataloader_drop_last", state.drop_last},
          {"seed", state.data_seed}};
}

TrainingData read_data(const nlohmann::json& json) {
  return {.file = json.at("train_file").get<std::string>(),
          .bytes = json.at("bytes").get<std::int64_t>(),
          .digest = json.value("digest", ""),
          .samples = json.at("samples").get<std::int64_t>(),
          .mixture = json.value("mixture", ""),
          .text_encoder = json.value("text_encoder", ""),
          .packing = read_optional<bool>(json, "packing"),
          .record_options = read_optional<std::string>(json, "record_options"),
          .split = read_optional<std::vector<double>>(json, "split"),
          .max_samples = read_optional<std::int64_t>(json, "max_train_samples")};
}

DataStart read_data_start(const nlohmann::json& json) {
  const auto found = json.find("data_start");
  if (found == json.end()) return {};
  return {.step = found->at("step").get<std::int64_t>(),
          .samples = found->at("samples").get<std::int64_t>(),
          .tokens = found->at("tokens").get<std::int64_t>()};
}

/// The members of the description that are compared.
std::string read_description(const nlohmann::json& json) {
  const auto dtype = read_optional<std::string>(json, "dtype");
  return dtype ? Json{{"dtype", *dtype}}.dump() : "{}";
}

/// Hugging Face's names.
void add_best(Json& json, const std::optional<BestCheckpoint>& best) {
  json["best_metric"] = best ? Json(best->metric) : Json();
  json["best_model_checkpoint"] = best ? Json(best->directory) : Json();
  json["best_global_step"] = best ? Json(best->step) : Json();
}

std::optional<BestCheckpoint> read_best(const nlohmann::json& json) {
  if (!json.contains("best_metric") || json.at("best_metric").is_null()) return std::nullopt;
  BestCheckpoint best;
  json.at("best_metric").get_to(best.metric);
  json.at("best_model_checkpoint").get_to(best.directory);
  json.at("best_global_step").get_to(best.step);
  return best;
}

/// The settings of the arithmetic that are compared, as far as the state has them.
Json rule_json(const TrainerState& state) {
  Json json = Json::parse(state.optimizer);
  if (json.contains("type")) json["optimizer"] = json.at("type");
  if (json.contains("type") && !json.contains("no_decay")) json["no_decay"] = "nothing";
  for (const char* const no_rule : {"type", "lr", "step"}) json.erase(no_rule);
  if (state.gradient_clipping) json["gradient_clipping"] = *state.gradient_clipping;
  const Json description = Json::parse(state.description);
  if (description.contains("dtype")) json["precision"] = description.at("dtype");
  return json;
}

/// For messages.
std::string word(const Json& json) {
  return printable(json.is_string() ? json.get<std::string>() : json.dump());
}

/// The text of a member that is an object; unchanged without one.
void take_object(const nlohmann::json& json,
                 const char* name,
                 const std::string& path,
                 std::string& text) {
  const auto found = json.find(name);
  if (found == json.end()) return;
  if (!found->is_object()) fail(ErrorCode::input, "{}: {} is no object", path, name);
  text = found->dump();
}

/// Throws Error{input} for what no run has counted.
void require_counts(const TrainerState& state, const std::string& path) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"global_step", state.global_step},
      {"updates", state.updates},
      {"optimizer.step", state.optimizer_step},
      {"skipped_steps", state.overflow.skipped_steps},
      {"logged_step", state.logged_step},
      {"unlogged_loss.steps", state.unlogged_loss.steps},
      {"data_start.step", state.data_start.step},
  };
  for (const auto& [name, count] : counts) {
    if (count < 0) fail(ErrorCode::input, "{}: {} is {}", path, name, count);
  }
}

}  // namespace

TrainerState describe_run(const config::TrainSettings& settings,
                          const model::Model& model,
                          int world_size,
                          const TrainingData& data) {
  TrainerState state;
  state.train_batch_size = settings.train_batch_size;
  state.block_size = settings.data.block_size;
  state.source_length = settings.data.source_length;
  state.documents = settings.data.documents;
  state.seed = settings.seed;
  state.shuffle = settings.data.shuffle;
  state.drop_last = settings.data.drop_last;
  state.data_seed = settings.data.seed;
  state.data = data;
  state.loads_best = settings.evaluation.loads_best;
  state.optimizer = optimizer_json(settings.optimizer, settings.schedule.learning_rate).dump();
  for (const std::string_view name : rules::state_names(settings.optimizer.rule)) {
    state.optimizer_states.emplace_back(name);
  }
  state.scheduler = config::schedule_json(settings.schedule);
  state.description =
      Json{{"model", {{"name", model.name}, {"parameters", model.parameter_count()}}},
           {"dtype", config::precision_name(model.dtype)},
           {"world_size", world_size},
           {"zero_stage", settings.zero.stage}}
          .dump();
  state.gradient_clipping = settings.gradient_clipping;
  state.micro_batch_size = settings.micro_batch_size;
  state.ranks = world_size;
  state.batch_origins = settings.batch_origins;
  return state;
}

void go_on_from(const TrainerState& saved, TrainerState& run) {
  run.global_step = saved.global_step;
  run.updates = saved.updates;
  run.optimizer_step = saved.optimizer_step;
  run.overflow = saved.overflow;
  run.unlogged_loss = saved.unlogged_loss;
  run.consumed_samples = saved.consumed_samples;
  run.client_state = saved.client_state;
}

bool same_schedule(const TrainerState& one, const TrainerState& other) {
  const nlohmann::json first = nlohmann::json::parse(one.scheduler);
  const nlohmann::json second = nlohmann::json::parse(other.scheduler);
  return first.empty() || second.empty() || (first == second && base_rate(one) == base_rate(other));
}

double base_rate(const TrainerState& state) {
  return nlohmann::json::parse(state.optimizer).value("lr", 0.0);
}

std::string optimizer_type(const TrainerState& state) {
  return nlohmann::json::parse(state.optimizer).value("type", "another");
}

bool same_held_out(const TrainerState& one, const TrainerState& other) {
  return one.held_out == other.held_out &&
         (one.held_out_content.empty() || other.held_out_content.empty() ||
          one.held_out_content == other.held_out_content);
}

std::vector<std::string> rule_changes(const TrainerState& saved, const TrainerState& run) {
  const Json before = rule_json(saved);
  const Json now = rule_json(run);
  std::vector<std::string> changes;
  for (const auto& [key, value] : now.items()) {
    const auto found = before.find(key);
    if (found == before.end() || *found == value) continue;
    changes.push_back(fmt::format("{} {} (was {})", key, word(value), word(*found)));
  }
  return changes;
}

std::string to_text(const TrainerState& state) {
  Json json{
      {"version", state.data_start.step > 0 ? version : version_without_data_start},
      {"global_step", state.global_step},
      {"updates", state.updates},
      {"skipped_steps", state.overflow.skipped_steps},
      {"skipped_in_row", state.overflow.skipped_in_row},
      {"loss_scaler", scaler_json(state.overflow.loss_scaler)},
      {"max_steps", state.max_steps},
      {"logged_step", state.logged_step},
      {"unlogged_loss", {{"sum", state.unlogged_loss.sum}, {"steps", state.unlogged_loss.steps}}},
      {"epoch", state.epoch},
      {"consumed_samples", state.consumed_samples},
      {"train_batch_size", state.train_batch_size},
      {"block_size", state.block_size},
      {"source_length", state.source_length},
      {"reset_attention_mask", state.documents},
      {"data", data_json(state)},
      {"rng", {{"generator", "philox4x32-10"}, {"seed", state.seed}}}};
  if (state.data_start.step > 0) {
    json["data_start"] = {{"step", state.data_start.step},
                          {"samples", state.data_start.samples},
                          {"tokens", state.data_start.tokens}};
  }
  json["gradient_clipping"] = optional_json(state.gradient_clipping);
  json["optimizer"] = Json::parse(state.optimizer);
  json.update(Json::parse(state.description));
  json["optimizer"]["step"] = state.optimizer_step;
  json["scheduler"] = Json::parse(state.scheduler);
  add_best(json, state.best);
  json["load_best_model_at_end"] = state.loads_best;
  json["held_out_data"] = state.held_out;
  json["held_out_content"] = state.held_out_content;
  if (!state.matmul_algorithms.empty()) {
    json["matmul_algorithms"] = Json::parse(state.matmul_algorithms);
  }
  json["client_state"] = Json::parse(state.client_state);
  if (!state.tag.empty()) json["tag"] = state.tag;
  // Names of files may be no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

TrainerState read_trainer_state(const checkpoint::Checkpoint& checkpoint) {
  return parse_trainer_state(checkpoint.read_text(trainer_state_file),
                             (checkpoint.path() / trainer_state_file).string(),
                             checkpoint.manifest().program);
}

TrainerState parse_trainer_state(std::string_view text,
                                 const std::string& path,
                                 const std::string& program) {
  const nlohmann::json json = parse_json_object(text, path);
  try {
    const auto found = json.at("version").get<std::int64_t>();
    if (found > version) {
      fail(ErrorCode::newer_format,
           "{}: {} wrote it in version {}; this dstrain reads up to {}: use the version that wrote "
           "it, or a newer one",
           path, program, found, version);
    }
    const nlohmann::json& data = json.at("data");
    TrainerState state;
    take_object(json, "optimizer", path, state.optimizer);
    take_object(json, "scheduler", path, state.scheduler);
    json.at("global_step").get_to(state.global_step);
    state.updates = json.value("updates", state.global_step);
    state.optimizer_step = json.value("/optimizer/step"_json_pointer, state.global_step);
    state.overflow.skipped_steps = json.value("skipped_steps", std::int64_t{0});
    state.overflow.skipped_in_row = json.value("skipped_in_row", std::int64_t{0});
    state.overflow.loss_scaler = read_scaler(json);
    json.at("max_steps").get_to(state.max_steps);
    json.at("epoch").get_to(state.epoch);
    state.consumed_samples = json.value("consumed_samples", std::int64_t{0});
    state.data_start = read_data_start(json);
    state.gradient_clipping = read_optional<double>(json, "gradient_clipping");
    state.description = read_description(json);
    json.at("train_batch_size").get_to(state.train_batch_size);
    json.at("block_size").get_to(state.block_size);
    state.source_length = json.value("source_length", std::int64_t{0});
    state.documents = json.value("reset_attention_mask", false);
    state.data = read_data(data);
    data.at("shuffle").get_to(state.shuffle);
    state.drop_last = data.value("dataloader_drop_last", true);  // older runs always did
    json.at("rng").at("seed").get_to(state.seed);
    state.logged_step = json.value("logged_step", std::int64_t{0});
    state.unlogged_loss.sum = json.value("/unlogged_loss/sum"_json_pointer, 0.0);
    state.unlogged_loss.steps = json.value("/unlogged_loss/steps"_json_pointer, std::int64_t{0});
    state.data_seed = data.value("seed", state.seed);
    state.best = read_best(json);
    state.loads_best = json.value("load_best_model_at_end", false);
    state.held_out = json.value("held_out_data", "");
    state.held_out_content = json.value("held_out_content", "");
    take_object(json, "matmul_algorithms", path, state.matmul_algorithms);
    take_object(json, "client_state", path, state.client_state);
    state.tag = json.value("tag", "");
    require_counts(state, path);
    return state;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::input, "{}: {}", path, exception_text(error));
  }
}

}  // namespace dstrain::engine
