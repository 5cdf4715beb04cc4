#include "cmd/generate_setup.h"

#include <limits>

#include <CLI/CLI.hpp>

#include "cmd/model_loading.h"
#include "launcher/plan/option_words.h"
#include "runtime/base/log.h"
#include "runtime/data/tokenizer.h"
#include "runtime/model/gpt2.h"

namespace dstrain::cmd {
namespace {

struct Options {
  std::string directory;
  std::string prompt;
  engine::SamplingOptions sampling;
};

void declare(CLI::App& app, Options& options) {
  engine::SamplingOptions& sampling = options.sampling;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  app.add_option("--model_name_or_path", options.directory,
                 "Hugging Face model directory, or checkpoint-N of a training run")
      ->required();
  app.add_option("--prompt", options.prompt, "text to continue")->required();
  app.add_option("--max_new_tokens", sampling.max_new_tokens, "tokens to add (100)")
      ->check(CLI::Range(std::int64_t{1}, most));
  app.add_flag("--do_sample", sampling.do_sample, "draw tokens instead of taking the likeliest");
  app.add_option("--temperature", sampling.temperature, "divides the logits when drawing (1.0)")
      ->check(CLI::PositiveNumber);
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

}  // namespace

std::string generate_help() {
  Options options;
  CLI::App app{"Continue a prompt with a trained model, byte by byte.", "dstrain generate"};
  declare(app, options);
  return app.help();
}

GenerateSetup set_up_generation(std::span<const std::string> arguments, int world_size) {
  Options options = parse(arguments);
  if (world_size > 1) fail(ErrorCode::usage, "generate runs on one rank; leave --num_gpus out");
  GenerateSetup setup;
  setup.prompt = std::move(options.prompt);
  setup.sampling = options.sampling;
  const model::Gpt2Config sizes = model_config({.directory = options.directory});
  StoredWeights weights = open_weights(options.directory, model::make_gpt2(sizes).parameters());
  setup.model = model::make_gpt2(sizes, weights.dtype);
  if (setup.model.vocabulary < data::byte_vocabulary) {
    fail(ErrorCode::input, "{}: a vocabulary of {} does not hold the byte tokenizer's 256 ids",
         options.directory, setup.model.vocabulary);
  }
  setup.byte_tokens = sizes.byte_tokens || sizes.vocab_size == data::byte_vocabulary;
  setup.parameters = std::move(weights.parameters);
  return setup;
}

}  // namespace dstrain::cmd
