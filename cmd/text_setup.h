#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/inference_options.h"
#include "cmd/train_setup.h"
#include "runtime/data/text_encoder.h"
#include "runtime/engine/generator.h"
#include "runtime/model/generation_config.h"
#include "runtime/session/run_setup.h"

namespace dstrain::cmd {

/// Options of `generate` and `chat` as typed. Empty ones come from the model's
/// generation_config.json.
struct TextOptions : InferenceOptions {
  std::optional<std::int64_t> max_new_tokens;
  std::optional<std::int64_t> min_new_tokens;
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  bool has_beams = false;  ///< the command has the next three
  std::optional<std::int64_t> num_beams;
  std::optional<double> length_penalty;
  std::optional<std::string> early_stopping;  ///< true, false or never
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::uint64_t seed = 42;
};

/// Declares an option that may be repeated. A text may begin with a dash, which the library would
/// take for an option in a list.
void declare_texts(CLI::App& app,
                   const std::string& name,
                   std::vector<std::string>& texts,
                   const std::string& help);

/// `new_tokens`: the default of --max_new_tokens, for the help.
void declare_text_options(CLI::App& app, TextOptions& options, std::int64_t new_tokens);

/// Those of beam search, for commands that may search.
void declare_beam_options(CLI::App& app, TextOptions& options);

/// Options of transformers' generate() and of other programs, and what to use instead.
std::string_view hint_at_text_option(std::string_view name);

constexpr std::int64_t default_new_tokens = 20;  ///< Hugging Face's

/// What generates, checked: every mistake in options and model directory is found while making it.
struct TextSetup {
  std::unique_ptr<data::TextEncoder> encoder;
  session::RunSetup run;  ///< without its memory until plan_texts()
  engine::ChoiceOptions choice;
  std::vector<std::string> stop;
  model::GenerationConfig defaults;
  bool knows_tokens = false;          ///< the model is known to have learned this tokenizer's
  std::vector<std::string> warnings;  ///< a line each

  /// Returns the most new tokens of a text that begins with `given` tokens. Throws Error{input} if
  /// the model's files leave no room.
  [[nodiscard]] std::int64_t new_tokens(const TextOptions& typed, std::int64_t given) const;
  /// Returns how tokens are chosen, for people.
  [[nodiscard]] std::string describe_choice() const;
};

/// `tool`: the command, for messages. Throws Error{usage}, Error{config} or Error{input}.
TextSetup set_up_texts(const TextOptions& typed, const std::string& tool, const TrainPlace& place);

/// Plans the memory of a decoder, and checks that it fits. `place`: of a rank that has not
/// allocated anything yet.
void plan_texts(TextSetup& setup,
                const engine::Decoder::Options& decoder,
                const TrainPlace& place,
                const session::Remedies& remedies);

}  // namespace dstrain::cmd
