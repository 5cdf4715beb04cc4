#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "cmd/model_loading.h"
#include "runtime/base/log.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/worker_env.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/data/tokenizer.h"
#include "runtime/engine/generator.h"
#include "runtime/model/gpt2.h"
#include "runtime/model/hf_import.h"
#include "zero/sharded_store.h"

namespace dstrain::cmd {
namespace {

struct GenerateOptions {
  std::string directory;
  std::string prompt;
  engine::SamplingOptions sampling;
};

/// Returns false when only the help was asked for.
bool parse(std::span<const std::string> arguments, GenerateOptions& options) {
  CLI::App app{"Continue a prompt with a trained model, byte by byte.", "dstrain generate"};
  engine::SamplingOptions& sampling = options.sampling;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  app.add_option("--model_name_or_path", options.directory, "Hugging Face model directory")
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
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "generate: {}", error.what());
  }
  if (options.prompt.empty()) fail(ErrorCode::usage, "generate: --prompt is empty");
  return true;
}

}  // namespace

int generate_command(std::span<const std::string> arguments) {
  GenerateOptions options;
  if (!parse(arguments, options)) return status::done;
  if (read_worker_env().world_size > 1) {
    fail(ErrorCode::usage, "generate runs on one rank; leave --num_gpus out");
  }
  flush_denormals_in_compute_threads();
  const model::Model model = model::make_gpt2(model_config({.directory = options.directory}));
  if (model.vocabulary < data::byte_vocabulary) {
    fail(ErrorCode::input, "{}: a vocabulary of {} does not hold the byte tokenizer's 256 ids",
         options.directory, model.vocabulary);
  }
  if (model.vocabulary > data::byte_vocabulary) {
    log_warning(
        "the prompt is read as bytes: only a model trained with --tokenizer byte answers "
        "in text");
  }
  Stream stream(Stream::Mode::inline_on_caller);
  HostMemory memory;
  const std::unique_ptr<comm::Communicator> communicator = comm::make_self_communicator();
  ops::Matmuls matmuls;
  const zero::FlatLayout layout(model, {});
  zero::ShardedStore store({layout, *communicator, {memory, memory, memory}}, {}, stream);
  store.load(model::HfWeights(options.directory, model.parameters()), stream);
  const std::vector<std::int32_t> tokens =
      engine::generate({model, store, *communicator, matmuls, memory},
                       data::encode_bytes(options.prompt), options.sampling, stream);
  fmt::print("{}{}\n", options.prompt, data::decode_bytes(tokens));
  return status::done;
}

}  // namespace dstrain::cmd
