#include "cmd/generate_setup.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include <CLI/CLI.hpp>

#include "cmd/model_loading.h"
#include "launcher/plan/option_words.h"
#include "runtime/base/log.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::cmd {
namespace {

struct Options {
  std::string directory;
  std::string tokenizer;  ///< empty: the model's own, or bytes
  std::string prompt;
  engine::SamplingOptions sampling;
};

void declare(CLI::App& app, Options& options) {
  engine::SamplingOptions& sampling = options.sampling;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  app.add_option("--model_name_or_path", options.directory,
                 "Hugging Face model directory, or checkpoint-N of a training run")
      ->required();
  app.add_option("--tokenizer", options.tokenizer,
                 "byte, or a directory with a tokenizer's files (the model's, else byte)");
  app.add_option("--prompt", options.prompt, "text to continue, or an encoder-decoder's source")
      ->required();
  app.add_option("--max_new_tokens", sampling.max_new_tokens, "tokens to add (100)")
      ->check(CLI::Range(std::int64_t{1}, most));
  app.add_flag("--do_sample", sampling.do_sample, "draw tokens instead of taking the likeliest");
  app.add_option("--temperature", sampling.temperature, "divides the logits when drawing (1.0)")
      ->check([](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        return value > 0 && std::isfinite(value) ? "" : "must be a number above 0, got " + text;
      });
  app.add_option("--top_k", sampling.top_k, "draw among the k likeliest tokens (0: all)")
      ->check(CLI::Range(std::int64_t{0}, most));
  app.add_option("--seed", sampling.seed, "of the draw (42)");
}

Options parse(std::span<const std::string> arguments) {
  Options options;
  CLI::App app;
  app.set_help_flag();
  declare(app, options);
  launcher::parse_option_words(app, arguments, "generate");
  if (options.prompt.empty()) fail(ErrorCode::usage, "generate: --prompt is empty");
  return options;
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

}  // namespace

std::string generate_help() {
  Options options;
  CLI::App app{"Continue a prompt with a trained model.", "dstrain generate"};
  declare(app, options);
  return app.help();
}

GenerateSetup set_up_generation(std::span<const std::string> arguments,
                                int world_size,
                                DeviceKind device) {
  Options options = parse(arguments);
  if (world_size > 1) fail(ErrorCode::usage, "generate runs on one rank; leave --num_gpus out");
  GenerateSetup setup;
  const std::unique_ptr<model::ModelConfig> model = model_config({.directory = options.directory});
  StoredWeights weights = open_weights(options.directory, model->make());
  setup.model = model->make({.dtype = weights.dtype, .device = device});
  const bool of_bytes = model->byte_tokens || model->vocabulary() == data::byte_vocabulary;
  const std::string own =
      !of_bytes && data::has_tokenizer(options.directory) ? options.directory : "byte";
  const std::string tokenizer = options.tokenizer.empty() ? own : options.tokenizer;
  setup.knows_tokens = tokenizer != "byte" || of_bytes;
  setup.encoder = data::make_encoder(tokenizer);
  setup.prompt = encode_prompt(*setup.encoder, options.prompt, setup.model);
  setup.sampling = options.sampling;
  setup.sampling.end = setup.encoder->end_of_text();
  if (!setup.sampling.end && !of_bytes) {
    setup.sampling.end = model::end_token(setup.model.config_json);
  }
  setup.parameters = std::move(weights.parameters);
  return setup;
}

}  // namespace dstrain::cmd
