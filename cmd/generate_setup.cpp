#include "cmd/generate_setup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/config/missing_directory.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/tokenizer.h"
#include "runtime/model/generation_config.h"
#include "runtime/model/model_family.h"
#include "runtime/model/other_formats.h"
#include "runtime/session/model_loading.h"

namespace dstrain::cmd {
namespace {

constexpr std::int64_t default_new_tokens = 20;
constexpr std::int64_t default_top_k = 50;  // Hugging Face's
constexpr Bytes input_bytes_max = 16 * mebibyte;

/// As typed; what is empty comes from the model's generation_config.json.
struct Options {
  std::string directory;
  std::string tokenizer;  ///< empty: the model's own, or bytes
  std::string prompt;
  std::optional<std::int64_t> max_new_tokens;
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::uint64_t seed = 42;

  [[nodiscard]] bool reads_stdin() const { return prompt == "-"; }
};

std::string check_temperature(double value) {
  return value > 0 && std::isfinite(value) ? "" : fmt::format("must be above 0, got {}", value);
}

std::string check_top_p(double value) {
  return value >= 0 && value <= 1 ? "" : fmt::format("must be from 0 to 1, got {}", value);
}

std::string check_count(double value) {
  return value >= 0 ? "" : fmt::format("must be at least 0, got {}", value);
}

CLI::Validator number_check(std::string (*check)(double)) {
  return {[check](const std::string& text) { return check(std::strtod(text.c_str(), nullptr)); },
          ""};
}

void declare(CLI::App& app, Options& options) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  app.add_option("--model_name_or_path", options.directory,
                 "Hugging Face model directory, or checkpoint-N of a training run")
      ->required();
  app.add_option("--tokenizer", options.tokenizer,
                 "byte, or a directory with a tokenizer's files [the model's, else byte]");
  app.add_option("--prompt", options.prompt,
                 "text to continue, or an encoder-decoder's source; - reads it from stdin, without "
                 "its last line break")
      ->required();
  app.add_option("--max_new_tokens", options.max_new_tokens,
                 "tokens to add [generation_config.json, else 20]")
      ->check(CLI::Range(std::int64_t{1}, most));
  app.add_option("--do_sample", options.do_sample,
                 "draw tokens instead of taking the likeliest [generation_config.json, else false]")
      ->expected(0, 1)
      ->default_str("true")
      ->option_text("[true|false]");
  app.add_option("--temperature", options.temperature,
                 "divide the logits when sampling [generation_config.json, else 1]")
      ->check(number_check(check_temperature));
  app.add_option("--top_k", options.top_k,
                 "sample among the k likeliest tokens, 0: all [generation_config.json, else 50]")
      ->check(number_check(check_count));
  app.add_option("--top_p", options.top_p,
                 "sample among the likeliest tokens whose probabilities sum to p "
                 "[generation_config.json, else 1]")
      ->check(number_check(check_top_p));
  app.add_option("--seed", options.seed, "seed of the sampling [42]")
      ->check(number_check(check_count));
}

/// Options of transformers' generate() and of its commands.
std::string_view hint_at_option(std::string_view name) {
  using Hint = std::pair<std::string_view, std::string_view>;
  constexpr std::string_view length = "use --max_new_tokens, which does not count the prompt";
  constexpr std::string_view unbuilt = "not implemented: generate is greedy, or samples";
  constexpr std::string_view penalty = "not implemented: logits are changed by --temperature alone";
  constexpr std::string_view end =
      "the model's generation_config.json says which tokens end a text";
  constexpr std::string_view dtype = "leave it out: the model computes in the type of its weights";
  static constexpr std::array hints{
      Hint{"--max_length", length},
      Hint{"--max_tokens", length},
      Hint{"--length", length},
      Hint{"--min_length", unbuilt},
      Hint{"--min_new_tokens", unbuilt},
      Hint{"--num_beams", unbuilt},
      Hint{"--num_return_sequences", unbuilt},
      Hint{"--min_p", unbuilt},
      Hint{"--typical_p", unbuilt},
      Hint{"--repetition_penalty", penalty},
      Hint{"--length_penalty", penalty},
      Hint{"--no_repeat_ngram_size", penalty},
      Hint{"--eos_token_id", end},
      Hint{"--pad_token_id", "leave it out: one prompt needs no padding"},
      Hint{"--stop", end},
      Hint{"--bf16", dtype},
      Hint{"--fp16", dtype},
      Hint{"--torch_dtype", dtype},
      Hint{"--dtype", dtype},
      Hint{"--use_cache", "not implemented: the whole text is computed again for each token"},
      Hint{"--model", "did you mean --model_name_or_path?"},
      Hint{"--trust_remote_code", "leave it out: no code of a model is run"}};
  const auto* const found = std::ranges::find(hints, name, &Hint::first);
  return found == hints.end() ? std::string_view() : found->second;
}

Options parse(std::span<const std::string> arguments) {
  Options options;
  CLI::App app;
  app.set_help_flag();
  declare(app, options);
  launcher::parse_option_words(app, arguments, "generate", hint_at_option);
  if (options.prompt.empty()) fail(ErrorCode::usage, "generate: --prompt is empty");
  return options;
}

/// The prompt's text. A line break at the end of stdin is the terminal's or echo's.
std::string prompt_text(const Options& options, const std::string& input) {
  if (!options.reads_stdin()) return options.prompt;
  std::string text = input;
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) fail(ErrorCode::usage, "generate: --prompt -: stdin holds no text");
  return text;
}

/// Sampling options that were typed although nothing is drawn.
void refuse_sampling_options(const Options& typed) {
  std::vector<std::string_view> names;
  if (typed.temperature) names.emplace_back("--temperature");
  if (typed.top_k) names.emplace_back("--top_k");
  if (typed.top_p) names.emplace_back("--top_p");
  if (names.empty()) return;
  fail(ErrorCode::usage,
       "generate: {}: no effect without sampling; add --do_sample, or leave {} out",
       fmt::join(names, ", "), names.size() == 1 ? "it" : "them");
}

/// The typed value, else the model's, else `otherwise`. What was typed has been checked.
template <class T>
T chosen(const std::optional<T>& typed,
         const std::optional<T>& models,
         T otherwise,
         const std::string& place,
         std::string (*check)(double)) {
  if (typed) return *typed;
  if (!models) return otherwise;
  const std::string problem = check(static_cast<double>(*models));
  if (!problem.empty()) fail(ErrorCode::input, "{} {}", place, problem);
  return *models;
}

/// max_length counts the prompt too, or of an encoder-decoder the token that begins its target.
std::int64_t choose_new_tokens(const Options& typed,
                               const model::GenerationConfig& defaults,
                               std::int64_t given) {
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

/// `given`: how many tokens the text that is generated begins with.
engine::SamplingOptions choose_sampling(const Options& typed,
                                        const model::GenerationConfig& defaults,
                                        std::int64_t given) {
  engine::SamplingOptions sampling;
  sampling.max_new_tokens = choose_new_tokens(typed, defaults, given);
  sampling.end_tokens = defaults.end_tokens;
  sampling.seed = typed.seed;
  sampling.do_sample = typed.do_sample.value_or(defaults.do_sample.value_or(false));
  if (!sampling.do_sample) {
    refuse_sampling_options(typed);
    return sampling;
  }
  const auto place = [&](const char* key) {
    return fmt::format("{}: {}", defaults.file, key);
  };
  sampling.temperature =
      chosen(typed.temperature, defaults.temperature, 1.0, place("temperature"), check_temperature);
  sampling.top_k = chosen(typed.top_k, defaults.top_k, default_top_k, place("top_k"), check_count);
  sampling.top_p = chosen(typed.top_p, defaults.top_p, 1.0, place("top_p"), check_top_p);
  return sampling;
}

std::string describe_mode(const engine::SamplingOptions& sampling) {
  const std::string length = fmt::format("at most {} new tokens", sampling.max_new_tokens);
  if (!sampling.do_sample) return "greedy decoding, " + length;
  return fmt::format("sampling with temperature {}, top_k {}, top_p {}, seed {}, {}",
                     sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed, length);
}

/// A text that goes on has no end; a source is whole.
std::vector<std::int32_t> encode_prompt(const data::TextEncoder& encoder,
                                        const std::string& prompt,
                                        const model::Model& model) {
  std::vector<std::int32_t> ids = encoder.beginning();
  std::ranges::copy(encoder.encode(prompt), std::back_inserter(ids));
  if (model.pairs) std::ranges::copy(encoder.ending(), std::back_inserter(ids));
  for (const std::int32_t id : ids) {
    if (id < model.vocabulary) continue;
    fail(ErrorCode::input, "the tokenizer makes token {} of the prompt, and the model has {}", id,
         model.vocabulary);
  }
  return ids;
}

void warn_of_end_tokens(const model::GenerationConfig& defaults, GenerateSetup& setup) {
  for (const std::int32_t token : defaults.end_tokens) {
    if (token < setup.run.model.vocabulary) continue;
    setup.warnings.push_back(
        fmt::format("{}: eos_token_id {} ends no text: the model has {} tokens", defaults.file,
                    token, setup.run.model.vocabulary));
  }
}

}  // namespace

std::string generate_help() {
  Options options;
  CLI::App app{"Continue a prompt with a trained model.", "dstrain generate"};
  declare(app, options);
  launcher::show_plain_types(app);
  return app.help();
}

std::string read_generate_input(std::span<const std::string> arguments) {
  if (!parse(arguments).reads_stdin()) return {};
  std::string text;
  std::array<char, std::size_t{64} * 1024> piece{};
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail(ErrorCode::usage, "generate: --prompt -: cannot read stdin: {}",
           std::generic_category().message(errno));
    }
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (std::ssize(text) <= input_bytes_max) continue;
    fail(ErrorCode::usage, "generate: --prompt -: stdin holds more than {}",
         format_bytes(input_bytes_max));
  }
}

GenerateSetup set_up_generation(std::span<const std::string> arguments,
                                const std::string& input,
                                int world_size,
                                DeviceKind device) {
  Options options = parse(arguments);
  if (world_size > 1) fail(ErrorCode::usage, "generate runs on one rank; leave --num_gpus out");
  GenerateSetup setup;
  const config::ModelSettings settings{.directory = options.directory};
  const std::unique_ptr<model::ModelConfig> model = session::model_config(settings);
  session::StoredWeights weights = session::open_weights(settings, model->make());
  setup.run.model = model->make({.dtype = weights.dtype, .device = device});
  const bool of_bytes = model->byte_tokens || model->vocabulary() == data::byte_vocabulary;
  const std::string own =
      !of_bytes && data::has_tokenizer(options.directory) ? options.directory : "byte";
  const std::string tokenizer = options.tokenizer.empty() ? own : options.tokenizer;
  const std::string missing = config::missing_tokenizer("--tokenizer", tokenizer);
  if (!missing.empty()) fail(ErrorCode::input, "{}", missing);
  setup.knows_tokens = tokenizer != "byte" || of_bytes;
  setup.encoder = data::make_encoder(tokenizer);
  setup.prompt = encode_prompt(*setup.encoder, prompt_text(options, input), setup.run.model);
  model::GenerationConfig defaults = model::read_generation_config(
      options.directory, setup.run.model.config_json, model->family().text_tokens.end,
      session::stored_companions(options.directory));
  // Bytes have no end: what config.json calls so is of a vocabulary that the model was not trained
  // with. Who writes a generation_config.json means it.
  if (of_bytes && tokenizer == "byte") {
    if (!defaults.has_own_file) defaults.end_tokens.clear();
  } else if (defaults.end_tokens.empty() && setup.encoder->end_of_text()) {
    defaults.end_tokens = {*setup.encoder->end_of_text()};
  }
  warn_of_end_tokens(defaults, setup);
  std::string adapter = model::explain_idle_adapter(options.directory);
  if (!adapter.empty()) setup.warnings.push_back(std::move(adapter));
  setup.given = setup.run.model.pairs ? 1 : std::ssize(setup.prompt);
  setup.sampling = choose_sampling(options, defaults, setup.given);
  setup.mode = describe_mode(setup.sampling);
  if (setup.given + setup.sampling.max_new_tokens - 1 > setup.run.model.positions) {
    setup.warnings.push_back(
        fmt::format("the model has {} positions: from there on it sees the last {} tokens only",
                    setup.run.model.positions, setup.run.model.positions));
  }
  if (!defaults.unsupported.empty()) {
    setup.warnings.push_back(fmt::format("{}: generate decodes without {}", defaults.file,
                                         fmt::join(defaults.unsupported, ", ")));
  }
  setup.run.initial_parameters = std::move(weights.parameters);
  return setup;
}

}  // namespace dstrain::cmd
