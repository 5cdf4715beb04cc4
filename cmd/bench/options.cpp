#include "cmd/bench/options.h"

#include <algorithm>
#include <array>
#include <limits>

#include <CLI/CLI.hpp>

#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/model/families.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::bench {
namespace {

constexpr auto most = std::numeric_limits<std::int64_t>::max();

/// The options as text, where they need more than a number.
struct Typed {
  Options options;
  std::string overrides;
  std::vector<std::string> sizes{"64KiB", "1MiB", "16MiB", "64MiB"};
  std::string bytes = "1GiB";
  std::string io_size = "512MiB";
  std::vector<std::string> block_sizes{"256KiB", "1MiB", "4MiB"};
};

CLI::App* add_command(CLI::App& app, const char* name, const char* summary, Options& options) {
  CLI::App* const command = app.add_subcommand(name, summary);
  command->add_option("--runs", options.runs, "timed runs, after one to warm up [20]")
      ->check(CLI::Range(1, 10'000));
  command->add_flag("--json", options.json, "one JSON object instead of a table");
  return command;
}

void declare_io(CLI::App& app, Typed& typed) {
  Options& options = typed.options;
  CLI::App* const io = add_command(
      app, "io", "reading and writing a file as offload to NVMe does, beside fio [runs: 3]",
      options);
  io->add_option("--path", options.directory, "on the disk to be measured, as nvme_path [.]")
      ->check(CLI::ExistingDirectory);
  io->add_option("--io_size", typed.io_size, "of the file, and of each run [512MiB]");
  io->add_option("--block_sizes", typed.block_sizes, "[256KiB,1MiB,4MiB]")->delimiter(',');
  io->add_option("--queue_depths", options.queue_depths, "[8,32]")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  io->add_option("--threads", options.io_threads, "intra_op_parallelism [1,2]")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
}

void declare(CLI::App& app, Typed& typed) {
  Options& options = typed.options;
  app.require_subcommand(1);
  CLI::App* const gemm =
      add_command(app, "gemm", "the matrix products of a training step, beside the peak", options);
  gemm->add_option("--config_name", options.model_name,
                   "preset, config.json or directory: whose products [gpt2]");
  gemm->add_option("--config_overrides", typed.overrides,
                   "as for train: num_hidden_layers=2,hidden_size=64");
  gemm->add_option("--per_device_train_batch_size", options.sequences, "sequences [4]")
      ->check(CLI::Range(std::int64_t{1}, most));
  gemm->add_option("--block_size", options.tokens, "tokens of each [512]")
      ->check(CLI::Range(std::int64_t{1}, most));
  CLI::App* const comm = add_command(
      app, "comm", "collectives between ranks, beside the machine's rate of copying", options);
  comm->add_option("--sizes", typed.sizes, "of the whole buffer [64KiB,1MiB,16MiB,64MiB]")
      ->delimiter(',');
  constexpr const char* cpu_time = "time on the processor: for a machine that is busy otherwise";
  comm->add_flag("--cpu_time", options.cpu_time, cpu_time);
  CLI::App* const adam =
      add_command(app, "adam", "the AdamW step, beside a loop that only moves its bytes", options);
  adam->add_flag("--cpu_time", options.cpu_time, "likewise; with OMP_NUM_THREADS=1");
  adam->add_option("--numel", options.numel, "parameters [33554432]")
      ->check(CLI::Range(std::int64_t{1}, most / 64));
  CLI::App* const checkpoint = add_command(
      app, "checkpoint", "saving and loading a shard, beside plain writing and reading", options);
  checkpoint->add_option("--bytes", typed.bytes, "of the shard [1GiB]");
  checkpoint->add_option("--directory", options.directory, "on the disk to be measured [.]")
      ->check(CLI::ExistingDirectory);
  declare_io(app, typed);
}

Bytes read_size(std::string_view option, const std::string& text) {
  const Result<Bytes> size = parse_bytes(text);
  if (!size.ok()) fail(ErrorCode::usage, "bench {}: {}", option, size.error());
  return size.value();
}

/// Whole pages, at least one.
Bytes read_pages(std::string_view option, const std::string& text) {
  constexpr Bytes page = 4096;
  const Bytes size = read_size(option, text);
  if (size == 0 || size % page != 0) {
    fail(ErrorCode::usage, "bench {} {}: must be a multiple of {}", option, text, page);
  }
  return size;
}

std::vector<Bytes> read_sizes(const std::vector<std::string>& texts, int world_size) {
  std::vector<Bytes> sizes;
  for (const std::string& text : texts) {
    const Bytes unit = size_of(DType::f32) * world_size;
    sizes.push_back(read_size("comm: --sizes", text) / unit * unit);
    if (sizes.back() == 0) {
      fail(ErrorCode::usage, "bench comm: --sizes: {} is less than a float for each of {} ranks",
           text, world_size);
    }
  }
  return sizes;
}

Bytes read_shard_bytes(const std::string& text) {
  const Bytes size = read_size("checkpoint: --bytes", text);
  const Bytes whole = size / size_of(DType::f32) * size_of(DType::f32);
  if (whole == 0) fail(ErrorCode::usage, "bench checkpoint: --bytes {}: less than a float", text);
  return whole;
}

void read_io(const CLI::App& app, Typed& typed) {
  Options& options = typed.options;
  options.bytes = read_pages("io: --io_size", typed.io_size);
  for (const std::string& text : typed.block_sizes) {
    options.block_sizes.push_back(read_pages("io: --block_sizes", text));
  }
  constexpr int usual_runs = 3;
  if (app.get_subcommand("io")->get_option("--runs")->empty()) options.runs = usual_runs;
}

void check_world(const Options& options, int world_size) {
  if (options.what == Options::What::comm) {
    if (world_size >= 2) return;
    fail(ErrorCode::usage,
         "bench comm measures between ranks, and there is one: dstrain --num_gpus 2 bench comm");
  }
  if (world_size > 1) {
    fail(ErrorCode::usage,
         "bench gemm, adam, checkpoint and io run on one rank; leave --num_gpus out");
  }
}

/// CLI11 would only say that something is missing.
void check_command(std::span<const std::string> arguments) {
  constexpr std::array<std::string_view, 5> commands{"gemm", "comm", "adam", "checkpoint", "io"};
  const std::string word = arguments.empty() ? "" : arguments.front();
  if (std::ranges::find(commands, word) != commands.end()) return;
  const std::string likely = suggest(word, commands);
  fail(ErrorCode::usage, "bench{}{}: {}; see dstrain bench --help", word.empty() ? "" : " ", word,
       likely.empty() ? "say what: gemm, comm, adam, checkpoint, io or launch"
                      : fmt::format("did you mean {}?", likely));
}

}  // namespace

Options parse_options(std::span<const std::string> arguments, int world_size) {
  check_command(arguments);
  Typed typed;
  CLI::App app;
  app.set_help_flag();
  declare(app, typed);
  launcher::parse_option_words(app, arguments, "bench");
  Options& options = typed.options;
  options.what = app.got_subcommand("gemm")   ? Options::What::gemm
                 : app.got_subcommand("comm") ? Options::What::comm
                 : app.got_subcommand("adam") ? Options::What::adam
                 : app.got_subcommand("io")   ? Options::What::io
                                              : Options::What::checkpoint;
  check_world(options, world_size);
  options.sizes = read_sizes(typed.sizes, world_size);
  if (options.what == Options::What::io) {
    read_io(app, typed);
  } else {
    options.bytes = read_shard_bytes(typed.bytes);
  }
  auto model = model::load_model_config(options.model_name);
  model->apply_overrides(typed.overrides);
  model->check();
  options.model = std::move(model);
  return std::move(options);
}

std::string help() {
  Typed typed;
  CLI::App app{"Benchmark this machine, and dstrain beside its ceilings.", "dstrain bench"};
  declare(app, typed);
  app.footer(
      "comm runs between ranks: dstrain --num_gpus 2 bench comm.\n"
      "dstrain bench launch [--help] measures how long it takes until many ranks have met.\n"
      "Other work on the machine shows in all figures: compare a figure with the ceiling beside "
      "it.");
  launcher::show_plain_types(app);
  return app.help("", CLI::AppFormatMode::All);
}

}  // namespace dstrain::bench
