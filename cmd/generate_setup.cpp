#include "cmd/generate_setup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cmd/output_lines.h"
#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"

namespace dstrain::cmd {
namespace {

constexpr Bytes input_bytes_max = 16 * mebibyte;
constexpr std::int64_t default_texts_at_once = 16;

struct GenerateOptions : TextOptions {
  std::vector<std::string> prompts;
  std::string prompt_file;
  std::string output_file;
  std::optional<std::int64_t> returns;
  std::int64_t batch = default_texts_at_once;
  bool streams = false;
  bool resumes = false;

  [[nodiscard]] bool reads_stdin() const {
    return std::ranges::find(prompts, "-") != prompts.end();
  }
};

void declare(CLI::App& app, GenerateOptions& options) {
  constexpr auto most = std::numeric_limits<std::int32_t>::max();
  declare_text_options(app, options, default_new_tokens);
  declare_beam_options(app, options);
  declare_texts(app, "--prompt", options.prompts,
                "text to continue, or an encoder-decoder's source; may be repeated; - reads it "
                "from stdin, without its last line break");
  app.add_option("--prompt_file", options.prompt_file,
                 "JSON lines with prompt (text), messages or prompt_ids");
  app.add_option("--output_file", options.output_file,
                 "write a JSON object per text there, in the order of the prompts [stdout]");
  app.add_flag("--resume", options.resumes, "continue an output file that was interrupted");
  app.add_option("--num_return_sequences", options.returns,
                 "texts per prompt, when sampling; of a beam search the best ones "
                 "[generation_config.json, else 1]")
      ->check(CLI::Range(1, most));
  app.add_option("--batch_size", options.batch, "texts per rank that grow at the same time [16]")
      ->check(CLI::Range(1, most));
  app.add_flag("--stream", options.streams, "print a text as it grows, of one prompt");
}

void check_options(const GenerateOptions& options) {
  const auto refuse = [](const char* why) {
    fail(ErrorCode::usage, "generate: {}", why);
  };
  if (options.prompts.empty() == options.prompt_file.empty()) {
    refuse(options.prompts.empty() ? "pass --prompt TEXT or --prompt_file FILE"
                                   : "--prompt and --prompt_file: pass one of them");
  }
  if (std::ranges::count(options.prompts, "-") > 1) refuse("--prompt -: stdin is read once");
  const bool several = options.prompts.size() > 1 || options.returns.value_or(1) > 1;
  if (options.streams && (several || options.prompts.empty())) {
    refuse("--stream: is for one text; pass one --prompt");
  }
  if (options.resumes && options.output_file.empty()) refuse("--resume: needs --output_file");
  if (options.resumes && options.prompt_file.empty()) refuse("--resume: needs --prompt_file");
}

GenerateOptions parse(std::span<const std::string> arguments) {
  GenerateOptions options;
  CLI::App app;
  app.set_help_flag();
  declare(app, options);
  launcher::parse_option_words(app, arguments, "generate", hint_at_text_option);
  check_options(options);
  return options;
}

/// A line break at the end of stdin is the terminal's or echo's.
std::string without_line_break(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::vector<Prompt> read_prompts(const GenerateOptions& options,
                                 const std::string& input,
                                 const PromptReader& reader) {
  if (!options.prompt_file.empty()) return reader.of_file(options.prompt_file);
  std::vector<Prompt> prompts;
  for (const std::string& prompt : options.prompts) {
    prompts.push_back(prompt == "-" ? reader.of_text(without_line_break(input), "--prompt -")
                                    : reader.of_text(prompt, "--prompt"));
  }
  return prompts;
}

/// Returns the positions of a text of all its new tokens, the last of which is not run; at least
/// one too many of a model that has fewer.
std::int64_t positions_of(const engine::TextRequest& request, const model::Model& model) {
  const std::int64_t given = model.pairs ? 1 : std::ssize(request.prompt);
  return given - 1 + std::min(request.max_new_tokens, model.positions + 1);
}

/// The decoder for these requests.
engine::Decoder::Options decoder_for(const GenerateSetup& setup,
                                     std::int64_t batch,
                                     int world_size) {
  const model::Model& model = setup.texts.run.model;
  engine::Decoder::Options options;
  for (std::size_t i = setup.done_requests(); i < setup.requests.size(); ++i) {
    const engine::TextRequest& request = setup.requests[i];
    options.positions =
        std::max(options.positions, std::min(positions_of(request, model), model.positions));
    if (model.pairs) options.source = std::max(options.source, std::ssize(request.prompt));
  }
  const auto texts = std::ssize(setup.requests) - static_cast<std::int64_t>(setup.done_requests());
  options.slots = std::clamp<std::int64_t>((texts + world_size - 1) / world_size, 1, batch) *
                  setup.texts.choice.beam.num_beams;
  options.positions = std::max<std::int64_t>(options.positions, 1);
  if (model.pairs) options.source = std::max<std::int64_t>(options.source, 1);
  return options;
}

/// The texts for each prompt.
std::int64_t choose_returns(const GenerateOptions& typed, const TextSetup& setup) {
  const std::int64_t models =
      std::max<std::int64_t>(setup.defaults.num_return_sequences.value_or(1), 1);
  const std::int64_t beams = setup.choice.beam.num_beams;
  if (beams > 1) {
    const std::int64_t returns = typed.returns.value_or(models);
    if (returns <= beams) return returns;
    fail(ErrorCode::usage,
         "generate: num_return_sequences {}: a search with {} beams has no more texts; pass more "
         "--num_beams or fewer --num_return_sequences",
         returns, beams);
  }
  if (setup.choice.do_sample) return typed.streams ? 1 : typed.returns.value_or(models);
  if (typed.returns.value_or(1) == 1) return 1;
  fail(ErrorCode::usage,
       "generate: --num_return_sequences {}: greedy decoding gives the same text each time; add "
       "--do_sample or --num_beams",
       *typed.returns);
}

void warn_of_positions(GenerateSetup& setup) {
  const model::Model& model = setup.texts.run.model;
  const auto is_long = [&](const engine::TextRequest& request) {
    return positions_of(request, model) > model.positions;
  };
  if (std::ranges::none_of(setup.requests, is_long)) return;
  setup.texts.warnings.push_back(
      fmt::format("the model has {} positions: a text ends there", model.positions));
}

}  // namespace

session::Remedies generate_remedies() {
  const auto say = [](auto... /*limits*/) {
    return "shorter prompts, fewer --max_new_tokens or a smaller --batch_size take less, a smaller "
           "model far less";
  };
  return {.device = say, .machine = say};
}

std::string generate_help() {
  GenerateOptions options;
  CLI::App app{"Generate text with a trained model.", "dstrain generate"};
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
                                const TrainPlace& place) {
  const GenerateOptions options = parse(arguments);
  GenerateSetup setup;
  setup.output_file = options.output_file;
  setup.streams = options.streams;
  setup.texts = set_up_texts(options, "generate", place);
  engine::BeamOptions& beam = setup.texts.choice.beam;
  if (options.streams && beam.num_beams > 1) {
    fail(ErrorCode::usage,
         "generate: --stream: a beam search has its text at the end; leave it out, or pass "
         "--num_beams 1");
  }
  const std::int64_t returns = choose_returns(options, setup.texts);
  // A search finds all texts of its prompt.
  beam.num_return_sequences = beam.num_beams > 1 ? returns : 1;
  const model::Model& model = setup.texts.run.model;
  for (const Prompt& prompt : read_prompts(options, input, {*setup.texts.encoder, model})) {
    const std::int64_t given = model.pairs ? 1 : std::ssize(prompt);
    const std::int64_t most = setup.texts.new_tokens(options, given);
    for (std::int64_t variant = 0; variant < returns / beam.num_return_sequences; ++variant) {
      setup.requests.push_back({prompt, most, static_cast<std::uint64_t>(variant)});
    }
  }
  setup.done = check_output_lines(options.output_file, options.resumes, setup.text_count());
  warn_of_positions(setup);
  plan_texts(setup.texts, decoder_for(setup, options.batch, place.world_size), place,
             generate_remedies());
  setup.mode = fmt::format(
      "{}, at most {} new tokens; {} in {} on {}, a cache of {}", setup.texts.describe_choice(),
      std::ranges::max(setup.requests, {}, &engine::TextRequest::max_new_tokens).max_new_tokens,
      counted(static_cast<std::int64_t>(setup.text_count() - setup.done), "text"),
      name_of(model.dtype), counted(place.world_size, "rank"),
      format_bytes(engine::Decoder::cache_bytes(model, *setup.texts.run.memory.decoder)));
  return setup;
}

}  // namespace dstrain::cmd
