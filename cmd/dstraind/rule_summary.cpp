#include "cmd/dstraind/rule_summary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/units.h"
#include "runtime/config/schedule_json.h"

namespace dstrain::cmd {
namespace {

/// "AdamW, weight decay 0.1 but of biases and norm weights".
std::string describe(const config::OptimizerSettings& optimizer) {
  const std::string_view difference = rules::difference(optimizer.rule);
  std::string text = fmt::format("{}{}", rules::type_of(optimizer.rule),
                                 difference.empty() ? "" : fmt::format(" ({})", difference));
  const double decay = rules::weight_decay(optimizer.rule);
  if (decay == 0) return text;
  return fmt::format("{}, weight decay {}{}", text, decay,
                     optimizer.decays_all ? "" : " but of biases and norm weights");
}

/// "rate 5e-05, linear with a warmup of 3 steps".
std::string describe(const config::ScheduleSettings& schedule) {
  using Trainers = config::HuggingFaceSchedule;
  std::string text =
      fmt::format("rate {}, {}", schedule.learning_rate, config::schedule_name(schedule));
  const auto* const own = std::get_if<Trainers>(&schedule.kind);
  if (own == nullptr || own->kind == Trainers::Kind::constant || own->warmup_steps == 0)
    return text;
  return text + fmt::format(" with a warmup of {}", counted(own->warmup_steps, "step"));
}

/// The dropout that Hugging Face's own configuration of a preset has and ours has not.
bool leaves_out_dropout(const TrainSetup& setup) {
  const config::ModelSettings& model = setup.settings.model;
  std::error_code ignored;
  if (!model.directory.empty() || std::filesystem::exists(model.config, ignored)) return false;
  const auto json = nlohmann::json::parse(setup.model.config_json);
  const std::string type = json.value("model_type", "");
  const char* const key = type == "gpt2" ? "resid_pdrop" : type == "t5" ? "dropout_rate" : "";
  return json.value(key, 1.0) == 0 && model.overrides.find(key) == model.overrides.npos;
}

/// Of these the Trainer draws other masks.
bool drops_out(const nlohmann::json& model) {
  constexpr std::array keys{"resid_pdrop", "attn_pdrop", "embd_pdrop", "attention_dropout",
                            "dropout_rate"};
  return std::ranges::any_of(keys, [&](const char* key) {
    const auto found = model.find(key);
    return found != model.end() && found->is_number() && *found > 0;
  });
}

/// The token whose embedding gets no gradient in transformers, of families that are like Llama.
std::optional<std::int64_t> padding_token(const nlohmann::json& model) {
  const std::string type = model.value("model_type", "");
  const auto found = model.find("pad_token_id");
  if (type == "gpt2" || type == "t5" || found == model.end() || !found->is_number_integer()) {
    return std::nullopt;
  }
  return found->get<std::int64_t>();
}

/// Whether the last step is evaluated and no step of the cadence.
bool evaluates_end(const config::TrainSettings& settings) {
  const config::Cadence& cadence = settings.evaluation.cadence;
  if (cadence.unit == config::Cadence::Unit::steps) return settings.steps % cadence.steps != 0;
  return cadence.unit == config::Cadence::Unit::never;
}

/// Whether --dataloader_drop_last leaves out whole micro steps, which the Trainer would take.
bool drops_micro_steps(const TrainSetup& setup) {
  const config::TrainSettings& settings = setup.settings;
  const std::int64_t left = setup.data.training_samples % settings.train_batch_size;
  return settings.data.drop_last && left >= settings.train_batch_size / settings.accumulation_steps;
}

/// run_clm.py tokenizes each line of a text, and each record, as a text of its own.
void add_text_differences(const TrainSetup& setup, std::vector<std::string>& found) {
  if (!setup.data.training_data || !setup.data.training_data->is_text()) return;
  const bool records = setup.data.training_data->packing().has_value();
  if (!records && setup.data.encloses_texts) {
    found.emplace_back("no special tokens around lines of a text (there around each)");
  }
  if (records && setup.data.ends_records && setup.data.training_data->counts_all_labels()) {
    found.emplace_back("an end-of-text token behind each record (there none)");
  }
}

std::vector<std::string> differences(const TrainSetup& setup) {
  constexpr std::int64_t trainers_logging_steps = 500;
  const config::TrainSettings& settings = setup.settings;
  const config::Cadence& logging = settings.output.logging;
  std::vector<std::string> found;
  if (setup.data.training_data && !setup.options.packing.typed() &&
      setup.data.training_data->packing() == true) {
    found.emplace_back("records share rows (--packing false gives each its own)");
  }
  if (settings.data.shuffle) found.emplace_back("another random order of samples");
  const bool draws_weights = settings.model.directory.empty() && setup.initial_parameters;
  if (draws_weights) found.emplace_back("other random weights");
  if (leaves_out_dropout(setup)) found.emplace_back("no dropout (there 0.1)");
  if (is_half(settings.dtype) && settings.ds_config_text.empty()) {
    found.push_back(
        fmt::format("{} as by DeepSpeed (there autocast)", config::precision_name(settings.dtype)));
  }
  if (setup.data.training_data && setup.data.training_data->counts_all_labels()) {
    found.emplace_back("samples of block_size + 1 tokens (in run_clm.py of block_size)");
  }
  add_text_differences(setup, found);
  if (setup.data.training_data && setup.data.training_data->sizes().source > 0 &&
      settings.accumulation_steps > 1) {
    found.emplace_back("a step's loss is the mean of its micro-batches (there their sum, for T5)");
  }
  if (drops_micro_steps(setup)) {
    found.emplace_back(
        "--dataloader_drop_last drops an incomplete global batch (there an incomplete micro "
        "batch)");
  }
  if (settings.data.drop_last && setup.data.validation_data) {
    found.emplace_back("all held-out samples are evaluated");
  }
  if (setup.data.validation_data && !setup.data.validation_data->counts_all_labels()) {
    found.emplace_back("the held-out loss is a mean over labels (there over batches)");
  }
  const auto model = nlohmann::json::parse(setup.model.config_json);
  if (drops_out(model)) found.emplace_back("other dropout masks");
  if (const auto token = padding_token(model)) {
    found.push_back(fmt::format(
        "the embedding of token {} learns (there it is padding, and gets no gradient)", *token));
  }
  if (setup.data.validation_data && settings.evaluation.enabled && evaluates_end(settings)) {
    found.emplace_back("the last step is evaluated, too");
  }
  if (logging.unit == config::Cadence::Unit::steps && logging.steps > 1 && settings.steps > 1) {
    found.emplace_back("the first step is logged, too");
  }
  if (!setup.options.logging_steps.typed() && logging.unit == config::Cadence::Unit::steps &&
      settings.steps > logging.steps) {
    found.push_back(fmt::format("losses are logged every {} steps (there {})", logging.steps,
                                trainers_logging_steps));
  }
  return found;
}

}  // namespace

std::string describe_rule(const TrainSetup& setup) {
  const std::vector<std::string> unlike = differences(setup);
  const config::TrainSettings& settings = setup.settings;
  return fmt::format(
      "{} of {}, {}{}", counted(settings.steps, "step"), describe(settings.optimizer),
      describe(settings.schedule),
      unlike.empty() ? ""
                     : fmt::format("; unlike Hugging Face's Trainer: {}", fmt::join(unlike, "; ")));
}

}  // namespace dstrain::cmd
