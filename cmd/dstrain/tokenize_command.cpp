#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/tool_options.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/config/missing_directory.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/model/hf_companions.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/os/file.h"
#include "runtime/os/shared_place.h"
#include "runtime/preprocess/learn.h"
#include "runtime/preprocess/shard_writer.h"
#include "runtime/preprocess/tokenize.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

struct TokenizeRequest {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string output;
  std::string format = "llmc";
  bool learns = false;
  std::int64_t vocabulary = 0;
  preprocess::TokenizeOptions options;
};

void declare_tokenize(CLI::App& app, TokenizeRequest& request) {
  constexpr int workers_max = 4096;
  app.add_option(
         "INPUT,--input", request.inputs,
         "read these files, directories or patterns: text, JSON lines, CSV, TSV; also .gz, .zst")
      ->required();
  app.add_option("--tokenizer,--tokenizer_name", request.tokenizer,
                 "use byte, or a directory with a Hugging Face tokenizer");
  app.add_option("--output_dir", request.output,
                 "write shards and manifest here; continue after complete shards")
      ->required();
  app.add_option("--format", request.format,
                 "write llmc (.bin) or megatron (.bin and .idx) files [llmc]")
      ->check(CLI::IsMember({"llmc", "megatron"}));
  app.add_option("--text_column,--json_keys", request.options.text_column,
                 "key of JSON lines, or column of CSV and TSV [text]");
  app.add_option("--shard_tokens", request.options.shard_tokens, "tokens of each shard [100000000]")
      ->check(CLI::Range(std::int64_t{1}, preprocess::shard_tokens_max));
  app.add_flag("--append_eod,!--no_append_eod", request.options.end_of_text,
               "end each document with the end-of-text token [yes]");
  app.add_option("--num_workers,--workers,--preprocessing_num_workers", request.options.workers,
                 "number of encoding threads [one per core]")
      ->check(CLI::Range(1, workers_max));
  app.add_flag("--overwrite_output_dir", request.options.overwrite, "replace existing files");
  app.add_flag("--train", request.learns,
               "learn a tokenizer instead of writing tokens: a byte-level BPE like GPT-2's");
  app.add_option("--vocab_size", request.vocabulary, "with --train: largest number of tokens");
}

using TokenizerFiles = std::vector<model::CompanionFile>;

/// The files in the output directory that belong to another tokenizer.
std::vector<fs::path> files_of_others(const std::string& output, const TokenizerFiles& own) {
  std::vector<fs::path> others;
  for (const model::CompanionFile& file : model::read_tokenizer_files(output)) {
    if (std::ranges::find(own, file) == own.end()) others.push_back(fs::path(output) / file.name);
  }
  return others;
}

/// Copies the tokenizer to its tokens, so that a model trained on them has it.
void copy_tokenizer(const TokenizerFiles& files, const std::string& output) {
  for (const fs::path& other : files_of_others(output, files)) fs::remove(other);
  for (const model::CompanionFile& file : files) {
    const fs::path target = fs::path(output) / file.name;
    if (!fs::exists(target)) write_text_file(target, file.bytes);
  }
}

/// Checks before any work that the directory, or the one that it will be made in, is writable.
void check_output(const std::string& path) {
  std::error_code ignored;
  const fs::path there = nearest_existing(path);
  if (::access(there.c_str(), W_OK) == 0 && fs::is_directory(there, ignored)) return;
  fail(ErrorCode::input, "cannot write to {}: {}", there.string(),
       std::strerror(fs::is_directory(there, ignored) ? errno : ENOTDIR));
}

/// Reports the progress on stderr every two seconds.
class ProgressTeller {
 public:
  explicit ProgressTeller(std::int64_t bytes) : bytes_(bytes) {}

  void tell(std::int64_t consumed, const std::string& made) {
    const double now = clock_.now_seconds();
    if (first_consumed_ < 0) {
      first_consumed_ = consumed;
      first_time_ = now;
      next_ = now + interval_s;
    }
    if (now < next_) return;
    next_ = now + interval_s;
    const double rate = static_cast<double>(consumed - first_consumed_) / (now - first_time_);
    const double left = static_cast<double>(bytes_ - consumed) / std::max(rate, 1.0);
    log_info(fmt::format("{} of {} | {}/s | {} | ETA {}", format_bytes(consumed),
                         format_bytes(bytes_), format_bytes(static_cast<Bytes>(rate)), made,
                         format_duration(left)));
  }
  [[nodiscard]] double seconds() const { return clock_.now_seconds() - start_; }

 private:
  static constexpr double interval_s = 2;

  SteadyClock clock_;
  std::int64_t bytes_;
  std::int64_t first_consumed_ = -1;  ///< a continued run starts in the middle
  double start_ = clock_.now_seconds();
  double first_time_ = 0;
  double next_ = 0;
};

std::int64_t bytes_of(const std::vector<preprocess::InputFile>& inputs) {
  std::int64_t bytes = 0;
  for (const preprocess::InputFile& input : inputs) bytes += input.bytes;
  return bytes;
}

void make_shards(TokenizeRequest& request, const std::vector<preprocess::InputFile>& inputs) {
  request.options.format =
      request.format == "megatron" ? data::ShardFormat::megatron : data::ShardFormat::llmc;
  const std::string missing = config::missing_tokenizer("--tokenizer", request.tokenizer);
  if (!missing.empty()) fail(ErrorCode::input, "{}", missing);
  const auto encoder = data::make_encoder(request.tokenizer);
  TokenizerFiles tokenizer;  // none for byte
  if (request.tokenizer != "byte") tokenizer = model::read_tokenizer_files(request.tokenizer);
  std::vector<fs::path> others;
  if (fs::exists(request.output)) others = files_of_others(request.output, tokenizer);
  if (!others.empty() && !request.options.overwrite) {
    fail(ErrorCode::input,
         "{}: belongs to another tokenizer; choose another directory, or pass "
         "--overwrite_output_dir to replace it",
         others.front().string());
  }
  if (request.options.end_of_text && !encoder->end_of_text()) {
    log_warning(
        fmt::format("the tokenizer {} has no end-of-text token (eos_token of "
                    "tokenizer_config.json): documents are not separated",
                    request.tokenizer));
  }
  ProgressTeller teller(bytes_of(inputs));
  const auto report = [&](const preprocess::TokenizeProgress& progress) {
    teller.tell(progress.consumed,
                fmt::format("{} tokens | {} shards", progress.tokens, progress.shards));
  };
  data::ShardManifest manifest;
  try {
    manifest = preprocess::tokenize(inputs, *encoder, request.output, request.options, report);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    fail(ErrorCode::io, "{}; to continue after the complete shards, rerun the same command",
         error.what());
  }
  copy_tokenizer(tokenizer, request.output);
  const std::int64_t documents = manifest.documents();
  fmt::print("{}: {} tokens of {} in {}, {:.1f} s; to train on them, pass --train_file {}\n",
             request.output, manifest.tokens(), counted(documents, "document"),
             counted(std::ssize(manifest.shards), "shard"), teller.seconds(), request.output);
}

void learn_tokenizer(const TokenizeRequest& request,
                     const std::vector<preprocess::InputFile>& inputs) {
  const fs::path output = request.output;
  if (data::has_tokenizer(request.output) && !request.options.overwrite) {
    fail(ErrorCode::input, "{}: contains a tokenizer; pass --overwrite_output_dir to replace it",
         request.output);
  }
  refuse_foreign_link(output);  // before the work, not after it
  const auto trainer = tokenizer::make_bpe_trainer();
  ProgressTeller teller(bytes_of(inputs));
  preprocess::add_documents(inputs, request.options.text_column, request.options.workers, *trainer,
                            [&](std::int64_t consumed) { teller.tell(consumed, "words counted"); });
  const tokenizer::LearntTokenizer learnt = trainer->learn(request.vocabulary);
  if (const std::error_code error = make_directories(output)) {
    fail_errno(error.value(), "create directory " + request.output);
  }
  write_text_file(output / "tokenizer_config.json", learnt.tokenizer_config_json);
  write_text_file(output / "tokenizer.json", learnt.tokenizer_json);
  if (learnt.vocabulary_size < request.vocabulary) {
    log_warning(fmt::format("the text yields only {} tokens", learnt.vocabulary_size));
  }
  fmt::print("{}: a tokenizer of {} tokens, {:.1f} s; to encode with it, pass --tokenizer {}\n",
             request.output, learnt.vocabulary_size, teller.seconds(), request.output);
}

}  // namespace

int tokenize_command(std::span<const std::string> arguments) {
  TokenizeRequest request;
  request.options.workers = compute_threads();
  CLI::App app{
      "Converts text to token files for llm.c, Megatron and dstrain train, or learns a tokenizer.",
      "dstrain tokenize"};
  declare_tokenize(app, request);
  if (!parse_tool_options(app, arguments)) return status::done;
  const bool names_tokenizer = !request.tokenizer.empty();
  if (request.learns == names_tokenizer || request.learns != (request.vocabulary != 0)) {
    fail(ErrorCode::usage,
         "tokenize: give either --tokenizer, or --train with --vocab_size to learn one");
  }
  for (const char* const option : {"--format", "--shard_tokens", "--append_eod"}) {
    if (!request.learns || app.count(option) == 0) continue;
    fail(ErrorCode::usage,
         "tokenize: {} applies to shards, which --train does not write; leave it out", option);
  }
  if (request.output.empty()) fail(ErrorCode::usage, "tokenize: --output_dir is empty");
  const preprocess::Inputs inputs = preprocess::find_inputs(request.inputs);
  for (const std::string& note : inputs.notes) log_warning(note);
  check_output(request.output);
  if (request.learns) {
    learn_tokenizer(request, inputs.files);
  } else {
    make_shards(request, inputs.files);
  }
  return status::done;
}

}  // namespace dstrain::cmd
