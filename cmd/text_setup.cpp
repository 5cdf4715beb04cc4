#include "cmd/text_setup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/config/missing_directory.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/tokenizer.h"
#include "runtime/model/model_family.h"
#include "runtime/model/other_formats.h"
#include "runtime/session/model_loading.h"

namespace dstrain::cmd {
namespace {

constexpr std::int64_t default_top_k = 50;  // Hugging Face's

std::string check_above_zero(double value) {
  return value > 0 && std::isfinite(value) ? "" : fmt::format("must be above 0, got {}", value);
}

std::string check_share(double value) {
  return value >= 0 && value <= 1 ? "" : fmt::format("must be from 0 to 1, got {}", value);
}

std::string check_count(double value) {
  return value >= 0 ? "" : fmt::format("must be at least 0, got {}", value);
}

std::string check_one_or_more(double value) {
  return value >= 1 ? "" : fmt::format("must be at least 1, got {}", value);
}

std::string check_any(double /*value*/) {
  return "";
}

CLI::Validator number_check(std::string (*check)(double)) {
  return {[check](const std::string& text) { return check(std::strtod(text.c_str(), nullptr)); },
          ""};
}

struct TypedOption {
  std::string_view name;
  bool is_typed;
};

/// Refuses options that were typed although they have no effect. `why`: "without ...; add ...".
void refuse_idle_options(std::span<const TypedOption> options,
                         std::string_view why,
                         const std::string& tool) {
  std::vector<std::string_view> names;
  for (const TypedOption& option : options) {
    if (option.is_typed) names.push_back(option.name);
  }
  if (names.empty()) return;
  fail(ErrorCode::usage, "{}: {}: no effect {}, or leave {} out", tool, fmt::join(names, ", "), why,
       names.size() == 1 ? "it" : "them");
}

void refuse_sampling_options(const TextOptions& typed, const std::string& tool) {
  const std::array options{TypedOption{"--temperature", typed.temperature.has_value()},
                           TypedOption{"--top_k", typed.top_k.has_value()},
                           TypedOption{"--top_p", typed.top_p.has_value()},
                           TypedOption{"--min_p", typed.min_p.has_value()}};
  refuse_idle_options(options, "without sampling; add --do_sample", tool);
}

void refuse_beam_options(const TextOptions& typed, const std::string& tool) {
  const std::array options{TypedOption{"--length_penalty", typed.length_penalty.has_value()},
                           TypedOption{"--early_stopping", typed.early_stopping.has_value()}};
  refuse_idle_options(options, "without beams; add --num_beams N", tool);
}

/// Chooses settings: the typed value, else the model's, else a default.
class Chooser {
 public:
  explicit Chooser(const model::GenerationConfig& defaults) : defaults_(defaults) {}

  template <class T>
  T of(const std::optional<T>& typed,
       const std::optional<T>& models,
       T otherwise,
       const char* key,
       std::string (*check)(double)) const {
    if (typed) return *typed;
    if (!models) return otherwise;
    const std::string problem = check(static_cast<double>(*models));
    if (!problem.empty()) fail(ErrorCode::input, "{}: {} {}", defaults_.file, key, problem);
    return *models;
  }

 private:
  const model::GenerationConfig& defaults_;
};

engine::EarlyStopping early_stopping_of(std::string_view name) {
  if (name == "never") return engine::EarlyStopping::never;
  return name == "true" ? engine::EarlyStopping::yes : engine::EarlyStopping::no;
}

std::string_view name_of(engine::EarlyStopping stopping) {
  if (stopping == engine::EarlyStopping::never) return "never";
  return stopping == engine::EarlyStopping::yes ? "true" : "false";
}

engine::BeamOptions choose_beams(const TextOptions& typed,
                                 const model::GenerationConfig& defaults,
                                 bool do_sample,
                                 const std::string& tool) {
  engine::BeamOptions beam;
  if (!typed.has_beams) return beam;
  const Chooser chooser(defaults);
  beam.num_beams = chooser.of(typed.num_beams, defaults.num_beams, std::int64_t{1}, "num_beams",
                              check_one_or_more);
  if (beam.num_beams == 1) {
    refuse_beam_options(typed, tool);
    return beam;
  }
  if (do_sample) {
    fail(ErrorCode::usage,
         "{}: beam search that samples is not implemented: num_beams is {} and do_sample is true; "
         "pass --num_beams 1 or --do_sample false",
         tool, beam.num_beams);
  }
  if (!typed.stop.empty()) {
    fail(ErrorCode::usage,
         "{}: --stop is not implemented for beam search; leave it out, or pass --num_beams 1",
         tool);
  }
  beam.length_penalty =
      chooser.of(typed.length_penalty, defaults.length_penalty, 1.0, "length_penalty", check_any);
  beam.early_stopping =
      early_stopping_of(typed.early_stopping.value_or(defaults.early_stopping.value_or("false")));
  return beam;
}

/// A search needs continuations of each beam that do not end.
void check_beams(const TextSetup& setup, const std::string& tool) {
  const std::int64_t beams = setup.choice.beam.num_beams;
  const std::size_t ends = setup.choice.end_tokens.size();
  const std::int64_t vocabulary = setup.run.model.vocabulary;
  const std::int64_t most = engine::BeamSearch::beams_max(vocabulary, ends);
  if (beams == 1 || beams <= most) return;
  fail(ErrorCode::usage,
       "{}: num_beams {}: a model of {} tokens with {} end tokens has at most {} beams; pass "
       "fewer --num_beams",
       tool, beams, vocabulary, ends, most);
}

engine::ChoiceOptions choose(const TextOptions& typed,
                             const model::GenerationConfig& defaults,
                             const std::string& tool) {
  const Chooser chooser(defaults);
  engine::ChoiceOptions choice;
  choice.seed = typed.seed;
  choice.min_new_tokens = chooser.of(typed.min_new_tokens, defaults.min_new_tokens, std::int64_t{0},
                                     "min_new_tokens", check_count);
  choice.repetition_penalty = chooser.of(typed.repetition_penalty, defaults.repetition_penalty, 1.0,
                                         "repetition_penalty", check_above_zero);
  choice.do_sample = typed.do_sample.value_or(defaults.do_sample.value_or(false));
  choice.beam = choose_beams(typed, defaults, choice.do_sample, tool);
  if (!choice.do_sample) {
    refuse_sampling_options(typed, tool);
    return choice;
  }
  choice.temperature =
      chooser.of(typed.temperature, defaults.temperature, 1.0, "temperature", check_above_zero);
  choice.top_k = chooser.of(typed.top_k, defaults.top_k, default_top_k, "top_k", check_count);
  choice.top_p = chooser.of(typed.top_p, defaults.top_p, 1.0, "top_p", check_share);
  choice.min_p = chooser.of(typed.min_p, defaults.min_p, 0.0, "min_p", check_share);
  return choice;
}

/// The tokens that end a text. Bytes have no end: what config.json says is of a vocabulary that the
/// model was not trained with, but a generation_config.json means it.
std::vector<std::int32_t> end_tokens(const TextSetup& setup,
                                     const TextOptions& typed,
                                     bool only_bytes) {
  if (typed.ignore_eos) return {};
  const model::GenerationConfig& defaults = setup.defaults;
  if (only_bytes) return defaults.own_end_tokens;
  std::vector<std::int32_t> tokens = defaults.end_tokens;
  if (tokens.empty() && setup.encoder->end_of_text()) tokens = {*setup.encoder->end_of_text()};
  return tokens;
}

void warn_of_end_tokens(TextSetup& setup) {
  std::erase_if(setup.choice.end_tokens, [&](std::int32_t token) {
    if (token < setup.run.model.vocabulary) return false;
    setup.warnings.push_back(
        fmt::format("{}: eos_token_id {} ends no text: the model has {} tokens",
                    setup.defaults.file, token, setup.run.model.vocabulary));
    return true;
  });
}

}  // namespace

void declare_texts(CLI::App& app,
                   const std::string& name,
                   std::vector<std::string>& texts,
                   const std::string& help) {
  const auto add = [&texts](const std::string& text) {
    texts.push_back(text);
  };
  app.add_option_function<std::string>(name, add, help)->trigger_on_parse();
}

void declare_text_options(CLI::App& app, TextOptions& options, std::int64_t new_tokens) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  declare_inference_options(app, options);
  app.add_option("--max_new_tokens", options.max_new_tokens,
                 fmt::format("tokens to add [generation_config.json, else {}]", new_tokens))
      ->check(CLI::Range(std::int64_t{1}, most));
  app.add_option("--min_new_tokens", options.min_new_tokens,
                 "tokens before a text may end [generation_config.json, else 0]")
      ->check(number_check(check_count));
  declare_switch(
      app, "--do_sample", options.do_sample,
      "draw tokens instead of taking the likeliest [generation_config.json, else false]");
  app.add_option("--temperature", options.temperature,
                 "divide the logits when sampling [generation_config.json, else 1]")
      ->check(number_check(check_above_zero));
  app.add_option("--top_k", options.top_k,
                 "sample among the k likeliest tokens, 0: all [generation_config.json, else 50]")
      ->check(number_check(check_count));
  app.add_option("--top_p", options.top_p,
                 "sample among the likeliest tokens whose probabilities sum to p "
                 "[generation_config.json, else 1]")
      ->check(number_check(check_share));
  app.add_option("--min_p", options.min_p,
                 "sample among tokens with this share of the largest probability "
                 "[generation_config.json, else 0]")
      ->check(number_check(check_share));
  app.add_option("--repetition_penalty", options.repetition_penalty,
                 "make tokens of the text so far less likely, above 1 "
                 "[generation_config.json, else 1]")
      ->check(number_check(check_above_zero));
  declare_texts(app, "--stop", options.stop,
                "end a text when this string is in it; may be repeated");
  app.add_flag("--ignore_eos", options.ignore_eos, "do not end texts at end tokens");
  app.add_option("--seed", options.seed, "seed of the sampling [42]")
      ->check(number_check(check_count));
}

void declare_beam_options(CLI::App& app, TextOptions& options) {
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  options.has_beams = true;
  app.add_option("--num_beams", options.num_beams,
                 "beams of a search for the likeliest text, each of which takes the memory of a "
                 "text; 1: no search [generation_config.json, else 1]")
      ->check(CLI::Range(1, most));
  app.add_option("--length_penalty", options.length_penalty,
                 "beam search: divide a text's score by its length to this power, above 0 for "
                 "longer texts [generation_config.json, else 1]");
  app.add_option("--early_stopping", options.early_stopping,
                 "beam search: end with num_beams texts (true), if the best beam is no better now "
                 "(false), or if it cannot become better (never) [generation_config.json, else "
                 "false]")
      ->check([](const std::string& word) {
        const bool is_known = word == "true" || word == "false" || word == "never";
        return is_known ? "" : fmt::format("must be true, false or never, got \"{}\"", word);
      })
      ->option_text("true|false|never");
}

std::string_view hint_at_text_option(std::string_view name) {
  using Hint = std::pair<std::string_view, std::string_view>;
  constexpr std::string_view length = "use --max_new_tokens, which does not count the prompt";
  constexpr std::string_view unbuilt =
      "not implemented: generate is greedy, samples, or searches with beams";
  constexpr std::string_view beams = "beam search is for dstrain generate";
  constexpr std::string_view penalty =
      "not implemented: logits are changed by --temperature and --repetition_penalty";
  constexpr std::string_view end =
      "the model's generation_config.json and config.json say which tokens end a text";
  constexpr std::string_view dtype = "use --bf16 or --fp16, or leave it out for the weights' type";
  static constexpr std::array hints{
      Hint{"--max_length", length},
      Hint{"--max_tokens", length},
      Hint{"--length", length},
      Hint{"--n_predict", length},
      Hint{"--min_length", "use --min_new_tokens, which does not count the prompt"},
      Hint{"--typical_p", unbuilt},
      Hint{"--num_beams", beams},
      Hint{"--length_penalty", beams},
      Hint{"--early_stopping", beams},
      Hint{"--no_repeat_ngram_size", penalty},
      Hint{"--presence_penalty", penalty},
      Hint{"--frequency_penalty", penalty},
      Hint{"--eos_token_id", end},
      Hint{"--pad_token_id", "leave it out: prompts need no padding"},
      Hint{"--stop_strings", "use --stop"},
      Hint{"--per_device_eval_batch_size", "use --batch_size"},
      Hint{"--torch_dtype", dtype},
      Hint{"--dtype", dtype},
      Hint{"--use_cache", "leave it out: keys and values are always cached"},
      Hint{"--model", "did you mean --model_name_or_path?"},
      Hint{"--trust_remote_code", "leave it out: no code of a model is run"}};
  const auto* const found = std::ranges::find(hints, name, &Hint::first);
  return found == hints.end() ? std::string_view() : found->second;
}

std::int64_t TextSetup::new_tokens(const TextOptions& typed, std::int64_t given) const {
  if (typed.max_new_tokens) return *typed.max_new_tokens;
  const std::int64_t most = defaults.max_new_tokens
                                ? *defaults.max_new_tokens
                                : defaults.max_length.value_or(default_new_tokens + given) - given;
  if (most > 0) return most;
  fail(ErrorCode::input, "{}: {} leaves no room for new tokens behind {}; pass --max_new_tokens",
       defaults.file,
       defaults.max_new_tokens ? fmt::format("max_new_tokens {}", *defaults.max_new_tokens)
                               : fmt::format("max_length {}", *defaults.max_length),
       given);
}

std::string TextSetup::describe_choice() const {
  std::string text = "greedy decoding";
  if (choice.do_sample) {
    text = fmt::format("sampling with temperature {}, top_k {}, top_p {}", choice.temperature,
                       choice.top_k, choice.top_p);
    if (choice.min_p > 0) text += fmt::format(", min_p {}", choice.min_p);
    text += fmt::format(", seed {}", choice.seed);
  }
  if (choice.beam.num_beams > 1) {
    text = fmt::format("beam search with {} beams, length_penalty {}, early_stopping {}",
                       choice.beam.num_beams, choice.beam.length_penalty,
                       name_of(choice.beam.early_stopping));
  }
  if (choice.repetition_penalty != 1) {
    text += fmt::format(", repetition_penalty {}", choice.repetition_penalty);
  }
  return text;
}

TextSetup set_up_texts(const TextOptions& typed, const std::string& tool, const TrainPlace& place) {
  for (const std::string& text : typed.stop) {
    if (text.empty()) fail(ErrorCode::usage, "{}: --stop is empty", tool);
  }
  config::TrainOptions options = as_training(typed, tool);
  complete_inference(options, tool);
  TextSetup setup;
  config::Resolved resolved = config::resolve(options, {.world_size = place.world_size});
  session::RunSetup& run = setup.run;
  run.settings = std::move(resolved.settings);
  run.settings.trains = false;
  const config::ModelSettings& settings = run.settings.model;
  const std::unique_ptr<model::ModelConfig> model = session::model_config(settings);
  run.model = model->make({.dtype = run.settings.dtype, .device = place.device});
  run.initial_parameters = session::open_weights(settings, run.model).parameters;
  const bool of_bytes = model->byte_tokens || model->vocabulary() == data::byte_vocabulary;
  const bool has_own = !of_bytes && data::has_tokenizer(typed.directory);
  const std::string tokenizer = !typed.tokenizer.empty() ? typed.tokenizer
                                : has_own                ? typed.directory
                                                         : "byte";
  const std::string missing = config::missing_tokenizer("--tokenizer", tokenizer);
  if (!missing.empty()) fail(ErrorCode::input, "{}", missing);
  setup.knows_tokens = tokenizer != "byte" || of_bytes;
  setup.encoder = data::make_encoder(tokenizer, {.date = run.settings.data.chat_date});
  setup.defaults = model::read_generation_config(typed.directory, run.model.config_json,
                                                 model->family().text_tokens.end,
                                                 session::stored_companions(typed.directory));
  setup.choice = choose(typed, setup.defaults, tool);
  setup.choice.end_tokens = end_tokens(setup, typed, of_bytes && tokenizer == "byte");
  setup.stop = typed.stop;
  warn_of_end_tokens(setup);
  check_beams(setup, tool);
  std::string adapter = model::explain_idle_adapter(typed.directory);
  if (!adapter.empty()) setup.warnings.push_back(std::move(adapter));
  if (setup.defaults.min_length.value_or(0) > 0 && !typed.min_new_tokens) {
    setup.defaults.unsupported.push_back(fmt::format("min_length {}", *setup.defaults.min_length));
  }
  if (setup.defaults.num_beams.value_or(1) > 1 && !typed.has_beams) {
    setup.defaults.unsupported.push_back(fmt::format("num_beams {}", *setup.defaults.num_beams));
  }
  if (!setup.defaults.unsupported.empty()) {
    setup.warnings.push_back(fmt::format("{}: {} decodes without {}", setup.defaults.file, tool,
                                         fmt::join(setup.defaults.unsupported, ", ")));
  }
  if (!setup.knows_tokens) {
    setup.warnings.emplace_back(
        "texts are read and written as bytes: only a model trained with --tokenizer byte knows "
        "them; --tokenizer DIR names its tokenizer");
  }
  run.alike = session::describe_alike(resolved.effective, run.model);
  return setup;
}

void plan_texts(TextSetup& setup,
                const engine::Decoder::Options& decoder,
                const TrainPlace& place,
                const session::Remedies& remedies) {
  session::RunSetup& run = setup.run;
  run.memory = session::set_up_memory(run.settings, run.model, place.world_size, decoder);
  check_budget(run.memory, place.device_memory, remedies);
  check_room(run.memory, run.model, place.room, remedies);
  if (place.node_ranks > 0) {
    check_machine(run.memory, place.node_ranks, place.host_memory, remedies);
  }
}

}  // namespace dstrain::cmd
