#include "cmd/evaluate_setup.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "cmd/inference_options.h"
#include "cmd/output_lines.h"
#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/config/train_flags.h"
#include "runtime/data/choice_questions.h"
#include "runtime/data/hugging_face_encoder.h"

namespace dstrain::cmd {
namespace {

constexpr std::int64_t default_batch = 8;  // Hugging Face's

struct EvaluateOptions : InferenceOptions {
  std::string file;
  std::string output_file;
  std::int64_t block_size = 0;
  std::int64_t source_length = 0;
  std::int64_t target_length = 0;
  std::int64_t batch = default_batch;
  std::int64_t samples = 0;
  std::string text_column;
  std::vector<std::string> role_names;
  std::optional<bool> packing, documents;
};

void declare_evaluation_count(CLI::App& app,
                              const std::string& names,
                              std::int64_t& value,
                              const std::string& help) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  app.add_option(names, value, help)->check(CLI::Range(std::int64_t{1}, most));
}

void declare_evaluation(CLI::App& app, EvaluateOptions& options) {
  declare_inference_options(app, options);
  app.add_option("--validation_file", options.file,
                 "data as for train, or multiple-choice questions: JSON lines with query, choices "
                 "and gold")
      ->required();
  app.add_option("--output_file", options.output_file, "write the JSON object there [stdout]");
  declare_evaluation_count(
      app, "--block_size,--max_length,--max_seq_length,--model_max_length", options.block_size,
      "tokens of a sequence [min(1024, the model's positions); questions: all of these]");
  declare_evaluation_count(app, "--max_source_length", options.source_length,
                           "tokens of an encoder-decoder's source [1024]");
  declare_evaluation_count(app, "--max_target_length", options.target_length,
                           "tokens of its target [128; questions: any number]");
  declare_evaluation_count(app, "--per_device_eval_batch_size", options.batch,
                           "sequences per rank at a time; choices are evaluated one by one [8]");
  declare_evaluation_count(app, "--max_eval_samples", options.samples,
                           "evaluate the first N samples [all]");
  app.add_option("--text_column", options.text_column,
                 "key of the texts in JSON lines [the layout of the records]");
  app.add_option("--role_names", options.role_names,
                 "roles under other names in conversations: narrator=system pupil=user");
  declare_switch(app, "--packing", options.packing,
                 "several JSON lines records in a sample [true]");
  declare_switch(app, "--reset_attention_mask", options.documents,
                 "attention and positions restart at each document [false]");
}

/// Options of train and of other programs.
std::string_view hint_at_evaluation(std::string_view name) {
  using Hint = std::pair<std::string_view, std::string_view>;
  constexpr std::string_view output = "use --output_file FILE; without it the result is on stdout";
  constexpr std::string_view batch = "use --per_device_eval_batch_size";
  constexpr std::string_view harness =
      "tasks of lm-evaluation-harness are not built in; give questions as --validation_file";
  static constexpr std::array hints{
      Hint{"--model", "use --model_name_or_path"},
      Hint{"--output_dir", output},
      Hint{"--output_path", output},
      Hint{"--batch_size", batch},
      Hint{"--eval_batch_size", batch},
      Hint{"--per_device_train_batch_size", batch},
      Hint{"--tasks", harness},
      Hint{"--num_fewshot", harness},
      Hint{"--limit", "use --max_eval_samples"},
      Hint{"--train_file", "use --validation_file"},
      Hint{"--eval_file", "use --validation_file"},
      Hint{"--torch_dtype", "use --bf16 or --fp16, or leave it out for the type of the weights"},
      Hint{"--dtype", "use --bf16 or --fp16, or leave it out for the type of the weights"},
      Hint{"--do_eval", "leave it out: the command says so"},
      Hint{"--trust_remote_code", "leave it out: no code of a model is run"}};
  const auto* const found = std::ranges::find(hints, name, &Hint::first);
  if (found != hints.end()) return found->second;
  const config::FlagRow* const row =
      name.starts_with("--") ? config::find_flag(std::string(name.substr(2))) : nullptr;
  return row == nullptr ? std::string_view() : "it is an option of train; leave it out";
}

EvaluateOptions parse_evaluation(std::span<const std::string> arguments) {
  EvaluateOptions options;
  CLI::App app;
  app.set_help_flag();
  declare_evaluation(app, options);
  launcher::parse_option_words(app, arguments, "evaluate", hint_at_evaluation);
  return options;
}

/// What these options are for `train --do_eval`.
config::TrainOptions as_evaluation(const EvaluateOptions& typed) {
  config::TrainOptions options = as_training(typed, "evaluate");
  const auto set = [](auto& flag, const auto& value, bool given, const char* name) {
    if (given) flag = {value, name};
  };
  const auto set_switch = [](config::Flag<bool>& flag, std::optional<bool> value,
                             const char* name) {
    if (value) flag = {*value, name};
  };
  options.do_eval.value = true;
  options.validation_file = {{{typed.file}}, "--validation_file"};
  options.per_device_eval_batch_size = {typed.batch, "--per_device_eval_batch_size"};
  set(options.tokenizer, typed.tokenizer, !typed.tokenizer.empty(), "--tokenizer");
  set(options.block_size, typed.block_size, typed.block_size > 0, "--block_size");
  set(options.max_source_length, typed.source_length, typed.source_length > 0,
      "--max_source_length");
  set(options.max_target_length, typed.target_length, typed.target_length > 0,
      "--max_target_length");
  set(options.max_eval_samples, typed.samples, typed.samples > 0, "--max_eval_samples");
  set(options.text_column, typed.text_column, !typed.text_column.empty(), "--text_column");
  set(options.role_names, fmt::format("{}", fmt::join(typed.role_names, " ")),
      !typed.role_names.empty(), "--role_names");
  set_switch(options.packing, typed.packing, "--packing");
  set_switch(options.reset_attention_mask, typed.documents, "--reset_attention_mask");
  return options;
}

/// Each choice is evaluated by itself, as it stands in the file.
void ask_questions(config::TrainOptions& options) {
  std::vector<std::string> problems;
  for (const std::string& flag :
       {options.text_column.typed_as, options.role_names.typed_as, options.chat_date.typed_as,
        options.packing.typed_as, options.reset_attention_mask.typed_as,
        options.max_eval_samples.typed_as}) {
    if (flag.empty()) continue;
    problems.push_back(fmt::format("{}: is not for questions, which {} has; leave it out", flag,
                                   options.validation_file.value.front().path));
  }
  if (!problems.empty()) fail(ErrorCode::usage, "evaluate: {}", fmt::join(problems, "\n"));
  options.questions = options.validation_file.value.front().path;
  options.validation_file = {};
  options.per_device_eval_batch_size.value = 1;
}

}  // namespace

std::string evaluate_help() {
  EvaluateOptions options;
  CLI::App app{"Evaluate a model on held-out data, or on multiple-choice questions.",
               "dstrain evaluate"};
  declare_evaluation(app, options);
  launcher::show_plain_types(app);
  return app.help();
}

EvaluateSetup set_up_evaluation(std::span<const std::string> arguments, const TrainPlace& place) {
  const EvaluateOptions typed = parse_evaluation(arguments);
  config::TrainOptions options = as_evaluation(typed);
  complete_inference(options, "evaluate");
  if (data::holds_questions(typed.file)) ask_questions(options);
  return {set_up_training(options, place), typed.output_file};
}

void check_output_file(const EvaluateSetup& setup) {
  if (!setup.output_file.empty()) check_output_place("evaluate", setup.output_file);
}

std::vector<std::int32_t> text_bytes(const TrainSetup& setup) {
  const std::string& tokenizer = setup.settings.data.tokenizer;
  const bool of_text = setup.data.validation_data && setup.data.validation_data->is_text();
  const bool is_known =
      of_text || tokenizer != "byte" || setup.of_bytes || setup.settings.data.tokenizer_given;
  if (!is_known) return {};
  const std::unique_ptr<data::TextEncoder> encoder = data::make_encoder(tokenizer);
  std::vector<std::int32_t> bytes;
  bytes.reserve(static_cast<std::size_t>(setup.model.vocabulary));
  for (std::int32_t id = 0; id < setup.model.vocabulary; ++id) {
    bytes.push_back(static_cast<std::int32_t>(encoder->text_bytes(id)));
  }
  return bytes;
}

}  // namespace dstrain::cmd
