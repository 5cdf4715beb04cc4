#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/tool_options.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/units.h"
#include "runtime/base/worker_env.h"
#include "runtime/model/hf_companions.h"
#include "runtime/preprocess/shard_writer.h"
#include "runtime/preprocess/tokenize.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

struct TokenizeRequest {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string output;
  std::string format = "llmc";
  bool no_end_of_text = false;
  bool overwrite = false;
  preprocess::TokenizeOptions options;
};

void declare_tokenize(CLI::App& app, TokenizeRequest& request) {
  constexpr int workers_max = 4096;
  app.add_option("INPUT", request.inputs,
                 "files, directories or patterns: text, JSON lines, CSV, TSV; also .gz, .zst")
      ->required();
  app.add_option("--tokenizer,--tokenizer_name", request.tokenizer,
                 "byte, or a directory with a Hugging Face tokenizer")
      ->required();
  app.add_option("--output_dir", request.output, "for shards and manifest; goes on where they end")
      ->required();
  app.add_option("--format", request.format, "llmc: .bin; megatron: .bin and .idx (llmc)")
      ->check(CLI::IsMember({"llmc", "megatron"}));
  app.add_option("--text_column", request.options.text_column,
                 "key of JSON lines, column of CSV and TSV (text)");
  app.add_option("--shard_tokens", request.options.shard_tokens, "tokens of a shard (100000000)")
      ->check(CLI::Range(std::int64_t{1}, preprocess::shard_tokens_max));
  app.add_flag("--no_append_eod", request.no_end_of_text,
               "do not end each document with the end-of-text token");
  app.add_option("--num_workers,--workers,--preprocessing_num_workers", request.options.workers,
                 "threads that encode (one a core)")
      ->check(CLI::Range(1, workers_max));
  app.add_flag("--overwrite_output_dir", request.overwrite, "remove the shards that are there");
}

/// What a directory may hold of ours.
void remove_shards(const fs::path& directory) {
  if (!fs::is_directory(directory)) return;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name == "manifest.json" || name.starts_with("tokens_")) fs::remove(entry.path());
  }
}

/// The tokenizer goes with its tokens, so that a model trained on them has it.
void copy_tokenizer(const std::string& tokenizer, const fs::path& directory) {
  if (tokenizer == "byte") return;
  for (const model::CompanionFile& file : model::read_companions(tokenizer)) {
    if (file.name != "generation_config.json") write_text_file(directory / file.name, file.bytes);
  }
}

/// Tells on stderr how far it has come, every other second.
class ProgressTeller {
 public:
  explicit ProgressTeller(std::int64_t bytes) : bytes_(bytes) {}

  void tell(const preprocess::TokenizeProgress& progress) {
    if (first_consumed_ < 0) first_consumed_ = progress.consumed;
    const double now = clock_.now_seconds();
    if (now < next_) return;
    constexpr double interval_s = 2;
    next_ = now + interval_s;
    const double rate =
        static_cast<double>(progress.consumed - first_consumed_) / std::max(now - start_, 1e-3);
    log_info(fmt::format(
        "{} of {} | {}/s | {} tokens | {} shards | ETA {}", format_bytes(progress.consumed),
        format_bytes(bytes_), format_bytes(static_cast<Bytes>(rate)), progress.tokens,
        progress.shards,
        format_duration(static_cast<double>(bytes_ - progress.consumed) / std::max(rate, 1.0))));
  }
  [[nodiscard]] double seconds() const { return clock_.now_seconds() - start_; }

 private:
  SteadyClock clock_;
  std::int64_t bytes_;
  std::int64_t first_consumed_ = -1;  ///< a run that goes on begins in the middle
  double start_ = clock_.now_seconds();
  double next_ = start_ + 2;
};

void print_summary(const TokenizeRequest& request,
                   const data::ShardManifest& manifest,
                   double seconds) {
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  for (const data::ShardManifest::Shard& shard : manifest.shards) {
    tokens += shard.tokens;
    documents += shard.documents;
  }
  fmt::print(
      "{}: {} tokens of {} documents in {} shards, {:.1f} s; train on them: --train_file {}\n",
      request.output, tokens, documents, manifest.shards.size(), seconds, request.output);
}

}  // namespace

int tokenize_command(std::span<const std::string> arguments) {
  TokenizeRequest request;
  request.options.workers = compute_threads();
  CLI::App app{"Makes token files of text, for llm.c, Megatron and dstrain train.",
               "dstrain tokenize"};
  declare_tokenize(app, request);
  if (!parse_tool_options(app, arguments)) return status::done;
  request.options.end_of_text = !request.no_end_of_text;
  request.options.format =
      request.format == "megatron" ? data::ShardFormat::megatron : data::ShardFormat::llmc;
  const std::vector<preprocess::InputFile> inputs = preprocess::find_inputs(request.inputs);
  const auto encoder = data::make_encoder(request.tokenizer);
  if (request.overwrite) remove_shards(request.output);
  std::int64_t bytes = 0;
  for (const preprocess::InputFile& input : inputs) bytes += input.bytes;
  ProgressTeller teller(bytes);
  const data::ShardManifest manifest =
      preprocess::tokenize(inputs, *encoder, request.output, request.options,
                           [&](const auto& progress) { teller.tell(progress); });
  copy_tokenizer(request.tokenizer, request.output);
  print_summary(request, manifest, teller.seconds());
  return status::done;
}

}  // namespace dstrain::cmd
