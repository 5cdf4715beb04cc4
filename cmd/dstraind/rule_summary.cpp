#include "cmd/dstraind/rule_summary.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/run_length.h"
#include "runtime/config/schedule_json.h"

namespace dstrain::cmd {
namespace {

using Json = nlohmann::json;

std::int64_t steps_of(const TrainSetup& setup) {
  const config::TrainSettings& settings = setup.settings;
  return training_steps(
      settings.max_steps, settings.num_train_epochs,
      steps_per_epoch(setup.training_samples, settings.train_batch_size, settings.data.drop_last));
}

/// "AdamW, weight decay 0.1 but of biases and norms".
std::string describe_optimizer(const TrainSetup& setup) {
  const Json rule = Json::parse(setup.state.optimizer);
  const auto decay = rule.at("weight_decay").get<double>();
  const std::string spared = rule.contains("no_decay") ? " but of biases and norm weights" : "";
  return fmt::format("{}{}", rule.at("type").get<std::string>(),
                     decay > 0 ? fmt::format(", weight decay {}{}", decay, spared) : "");
}

/// "rate 5e-05, linear with a warmup of 3 steps".
std::string describe_rate(const config::ScheduleSettings& schedule) {
  const Json json = Json::parse(config::schedule_json(schedule));
  const bool of_trainer = std::holds_alternative<config::HuggingFaceSchedule>(schedule.kind);
  const std::int64_t warmup = of_trainer ? json.value("warmup_steps", std::int64_t{0}) : 0;
  return fmt::format("rate {}, {}{}", schedule.learning_rate, json.at("type").get<std::string>(),
                     warmup > 0 ? fmt::format(" with a warmup of {} steps", warmup) : "");
}

/// The dropout that Hugging Face's own configuration of a preset has and ours has not.
bool leaves_out_dropout(const TrainSetup& setup) {
  const config::ModelSettings& model = setup.settings.model;
  std::error_code ignored;
  if (!model.directory.empty() || std::filesystem::exists(model.config, ignored)) return false;
  const Json json = Json::parse(setup.model.config_json);
  const std::string type = json.value("model_type", "");
  const char* const key = type == "gpt2" ? "resid_pdrop" : type == "t5" ? "dropout_rate" : "";
  return json.value(key, 1.0) == 0 && model.overrides.find(key) == model.overrides.npos;
}

/// Whether --dataloader_drop_last leaves out whole micro steps, which the Trainer would take.
bool drops_micro_steps(const TrainSetup& setup) {
  const config::TrainSettings& settings = setup.settings;
  const std::int64_t left = setup.training_samples % settings.train_batch_size;
  return settings.data.drop_last && left >= settings.train_batch_size / settings.accumulation_steps;
}

std::vector<std::string> differences(const TrainSetup& setup) {
  constexpr std::int64_t trainers_logging_steps = 500;
  const config::TrainSettings& settings = setup.settings;
  const config::Cadence& logging = settings.output.logging;
  std::vector<std::string> found;
  if (settings.data.shuffle) found.emplace_back("a random order of samples of its own");
  const bool draws_weights = settings.model.directory.empty() && setup.initial_parameters;
  if (draws_weights) found.emplace_back("random weights of its own");
  if (leaves_out_dropout(setup)) found.emplace_back("no dropout (there 0.1)");
  if (is_half(settings.dtype) && setup.settings.ds_config_text.empty()) {
    found.push_back(
        fmt::format("{} as by DeepSpeed (there autocast)", config::precision_name(settings.dtype)));
  }
  if (drops_micro_steps(setup)) {
    found.emplace_back(
        "--dataloader_drop_last drops an incomplete global batch (there an incomplete micro "
        "batch)");
  }
  if (settings.data.drop_last && setup.validation_data) {
    found.emplace_back("all held-out samples are evaluated");
  }
  if (setup.validation_data && !setup.validation_data->counts_all_labels()) {
    found.emplace_back("the held-out loss is a mean over labels (there over batches)");
  }
  if (!setup.options.logging_steps.typed() && logging.unit == config::Cadence::Unit::steps &&
      steps_of(setup) > logging.steps) {
    found.push_back(
        fmt::format("a row every {} steps (there {})", logging.steps, trainers_logging_steps));
  }
  return found;
}

}  // namespace

std::string describe_rule(const TrainSetup& setup) {
  const std::vector<std::string> unlike = differences(setup);
  return fmt::format(
      "{} steps of {}, {}{}", steps_of(setup), describe_optimizer(setup),
      describe_rate(setup.settings.schedule),
      unlike.empty() ? ""
                     : fmt::format("; unlike Hugging Face's Trainer: {}", fmt::join(unlike, ", ")));
}

}  // namespace dstrain::cmd
