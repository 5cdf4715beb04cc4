#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/tool_options.h"
#include "cmd/plan_setup.h"
#include "cmd/train_setup.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/config/train_flags.h"
#include "runtime/config/train_options.h"
#include "runtime/ops/matmul_cpu.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/gpu_files.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

constexpr const char* to_stdout = "-";

struct InitOptions {
  std::string task;
  std::string file = "run.yaml";
  std::optional<std::string> device;
  std::optional<int> ranks;
  config::ExpandedArguments given{{}};  ///< options of train
};

void declare_init(CLI::App& app, InitOptions& options) {
  app.add_option("TASK", options.task, "pretrain (random weights) or finetune (a model's)")
      ->required()
      ->check(CLI::IsMember({"pretrain", "finetune"}));
  app.add_option("--output", options.file, "file to write, - for stdout [run.yaml]");
  app.add_option("--num_gpus", options.ranks, "ranks of this machine [its GPUs, else 1]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--device", options.device, "auto (the device used here), cpu or cuda");
  app.allow_extras();
  app.footer(
      "\n"
      "Looks at this machine's memory and devices, the model and the data, and writes a file of\n"
      "options for `dstrain train FILE` in which every line says what it does. Options of train\n"
      "that are given here, also by --config FILE, stand in the file as they are:\n"
      "  dstrain init finetune --model_name_or_path DIR --train_file records.jsonl");
}

/// The ranks of this machine and what each may take of it.
struct Machine {
  DeviceKind device = DeviceKind::cpu;
  int ranks = 1;
  Bytes device_memory = 0;  ///< of a rank
  Bytes host_memory = 0;    ///< of all ranks, beside that
  std::string description;
};

/// Part of what is free is left to libraries, and to others.
constexpr double used_share = 0.8;

Machine look_at_machine(const InitOptions& options) {
  Machine machine{.device = resolve_device(read_device_choice(options.device)), .description = {}};
  const bool on_cpu = shares_host_memory(machine.device);
  machine.ranks = options.ranks.value_or(on_cpu ? 1 : std::max(count_visible_gpu_files(), 1));
  const std::optional<AvailableMemory> available = available_memory();
  const Bytes free = available ? available->bytes : 4 * gibibyte;
  const auto share = [](Bytes bytes, int of) {
    return static_cast<Bytes>(used_share * static_cast<double>(bytes) / of);
  };
  machine.device_memory = share(free, machine.ranks);
  machine.host_memory = share(free, 1);
  machine.description = fmt::format("{} on the CPU, {} of memory free",
                                    counted(machine.ranks, "rank"), format_bytes(free));
  if (on_cpu) return machine;
  const Bytes gpu = open_backend({machine.device, 0})->free_memory();
  machine.device_memory = share(gpu, 1);
  machine.description =
      fmt::format("{}, a GPU with {} free for each, {} of host memory free",
                  counted(machine.ranks, "rank"), format_bytes(gpu), format_bytes(free));
  return machine;
}

bool multiplies_bf16(DeviceKind device) {
  return !shares_host_memory(device) ||
         ops::cpu::preferred_bf16_products() == ops::cpu::Bf16Products::native;
}

/// A value as YAML, in quotes where it would not be read as it is.
std::string in_yaml(const std::string& value) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=,-";
  constexpr std::array<std::string_view, 4> words{"no", "off", "null", "~"};
  const bool quoted = value.empty() || value.starts_with('-') ||
                      value.find_first_not_of(plain) != value.npos ||
                      std::ranges::find(words, value) != words.end();
  return quoted ? nlohmann::json(value).dump() : value;
}

/// The first of out, out-2, out-3 ... that is absent or empty.
std::string free_directory() {
  std::string name = "out";
  std::error_code ignored;
  for (int i = 2;
       std::filesystem::exists(name, ignored) && !std::filesystem::is_empty(name, ignored); ++i) {
    name = fmt::format("out-{}", i);
  }
  return name;
}

/// The bytes that may have to be tokenized. Directories and patterns hold tokens and count as 0.
std::uintmax_t bytes_of(const std::vector<config::DataFile>& files) {
  std::uintmax_t bytes = 0;
  for (const config::DataFile& file : files) {
    std::error_code absent;
    const std::uintmax_t size = std::filesystem::file_size(file.path, absent);
    if (!absent) bytes += size;
  }
  return bytes;
}

/// A file of options: what is typed, and what is chosen beside it.
class RunFile {
 public:
  RunFile(const InitOptions& options, const Machine& machine)
      : tunes_(options.task == "finetune"),
        machine_(machine),
        words_(options.given.words()),
        typed_(config::read_train_flags(words_)) {
    check();
    heading_ = "What to train, and on what";
    keep_typed();
    choose_model();
    choose_schedule();
    choose_memory();
    choose_output();
    check_run();
  }

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "# Written by dstrain init for {}.\n{}\n# DeepSpeed's configuration: {}\n"
        "deepspeed:\n  zero_optimization: {}\n",
        machine_.description, lines_, taken_, zero_);
  }

 private:
  void check() const {
    if (typed_.deepspeed.typed() || typed_.deepspeed_config.typed()) {
      fail(ErrorCode::usage, "init: --deepspeed: init chooses the configuration; leave it out");
    }
    if (typed_.zero_stage.typed()) {
      fail(ErrorCode::usage,
           "init: {}: init chooses the stage; leave it out, or change it in the file",
           typed_.zero_stage.typed_as);
    }
    if (!typed_.train_file.typed()) {
      fail(ErrorCode::usage, "init: --train_file FILE is required: what to train on");
    }
    if (tunes_ && !typed_.model_name_or_path.typed()) {
      fail(ErrorCode::usage, "init finetune: --model_name_or_path DIR is required");
    }
    if (!tunes_ && typed_.model_name_or_path.typed()) {
      fail(ErrorCode::usage,
           "init pretrain: {} has weights already; dstrain init finetune goes on from them",
           typed_.model_name_or_path.value);
    }
  }

  /// A line; a heading comes before the first one under it.
  void write(const std::string& name, const std::string& value, const std::string& comment) {
    if (!heading_.empty()) lines_ += fmt::format("\n# {}\n", std::exchange(heading_, {}));
    const std::string line = fmt::format("{}: {}", name, value);
    lines_ += comment.empty() ? line + "\n" : fmt::format("{:<40} # {}\n", line, comment);
  }

  /// An option that is typed twice, under whatever name, counts the last time.
  void keep_typed() {
    struct Line {
      const config::FlagRow* row;
      std::string name;
      std::string value;
    };
    std::vector<Line> lines;
    for (std::size_t at = 0; at < words_.size();) {
      const std::string& word = words_[at];
      const std::size_t equals = word.find('=');
      std::string name = word.substr(2, equals - 2);
      std::ranges::replace(name, '-', '_');
      std::vector<std::string> values;
      if (equals != std::string::npos) values.push_back(in_yaml(word.substr(equals + 1)));
      for (++at; at < words_.size() && !words_[at].starts_with("--"); ++at) {
        values.push_back(in_yaml(words_[at]));
      }
      if (values.empty()) values.emplace_back("true");
      const bool one = values.size() == 1;
      const config::FlagRow* const row = config::find_flag(name);
      std::erase_if(lines, [&](const Line& line) {
        return line.name == name || (row != nullptr && line.row == row);
      });
      lines.push_back({row, std::move(name),
                       one ? values.front() : fmt::format("[{}]", fmt::join(values, ", "))});
    }
    for (const Line& line : lines) write(line.name, line.value, "");
  }

  template <class T>
  void choose(const config::Flag<T>& flag,
              const std::string& name,
              const std::string& value,
              const std::string& comment = "") {
    if (flag.typed()) return;
    write(name, in_yaml(value), comment);
    words_.push_back(fmt::format("--{}={}", name, value));
  }

  void choose_model() {
    const bool named = typed_.config_name.typed() || typed_.model_name_or_path.typed() ||
                       typed_.num_layers.typed() || typed_.hidden_size.typed();
    if (named) return;
    choose(typed_.config_name, "config_name", "gpt2", "with random weights");
    if (!shares_host_memory(machine_.device)) return;
    const bool bytes = !typed_.tokenizer.typed() || typed_.tokenizer.value == "byte";
    choose(typed_.config_overrides, "config_overrides",
           fmt::format("n_layer=6,n_embd=384,n_head=6{}", bytes ? ",vocab_size=256" : ""),
           "a small one, for a CPU");
  }

  void choose_schedule() {
    const PlanSetup model(config::read_train_flags(words_), machine_.ranks, machine_.device);
    if (!model.model().pairs) {
      const bool small = !tunes_ && shares_host_memory(machine_.device);
      const std::int64_t block =
          std::min<std::int64_t>(small ? 256 : 1024, model.model().positions);
      choose(typed_.block_size, "block_size", fmt::format("{}", block), "tokens of a sample");
    }
    heading_ = "How long, and how fast";
    if (!typed_.max_steps.typed()) {
      choose(typed_.num_train_epochs, "num_train_epochs", tunes_ ? "3" : "1",
             "passes over the data; or max_steps: N");
    }
    choose(typed_.learning_rate, "learning_rate", tunes_ ? "2e-5" : "6e-4");
    choose(typed_.lr_scheduler_type, "lr_scheduler_type", "cosine", "down to 0");
    if (!typed_.warmup_ratio.typed()) {
      choose(typed_.warmup_steps, "warmup_steps", tunes_ ? "0.03" : "0.02",
             "below 1: a share of all steps");
    }
    choose(typed_.weight_decay, "weight_decay", tunes_ ? "0" : "0.1");
  }

  /// The largest micro-batch that fits, with the cheapest stage and offload, and accumulation up to
  /// a batch of usual size.
  void choose_memory() {
    constexpr std::int64_t usual_batch = 32;
    heading_ = "Precision and memory";
    if (!typed_.fp16.typed() && !typed_.precision.typed()) {
      const bool fast = multiplies_bf16(machine_.device);
      choose(typed_.bf16, "bf16", fast ? "true" : "false",
             fast ? "over fp32 master weights" : "this CPU multiplies bf16 no faster than fp32");
    }
    const auto& batch = typed_.per_device_train_batch_size;
    const std::vector<std::string> words = words_;
    for (std::int64_t micro =
             batch.typed() ? 1 : std::max<std::int64_t>(usual_batch / machine_.ranks, 1);
         micro > 0; micro /= 2) {
      words_ = words;
      if (!batch.typed()) {
        words_.push_back(fmt::format("--per_device_train_batch_size={}", micro));
      }
      const PlanSetup setup(config::read_train_flags(words_), machine_.ranks, machine_.device);
      const auto row = cheapest(setup);
      if (!row) continue;
      words_ = words;
      choose(batch, "per_device_train_batch_size", fmt::format("{}", micro), "of a rank at once");
      const std::int64_t together = setup.settings().micro_batch_size * machine_.ranks;
      const std::int64_t steps = std::max<std::int64_t>(usual_batch / together, 1);
      if (!typed_.global_batch_size.typed()) {
        choose(typed_.gradient_accumulation_steps, "gradient_accumulation_steps",
               fmt::format("{}", steps),
               fmt::format("{} sequences an optimizer step", steps * together));
      }
      if (row->choice.checkpointing) {
        choose(typed_.gradient_checkpointing, "gradient_checkpointing", "true",
               "computes activations twice to save memory");
      }
      zero_ = nlohmann::ordered_json::parse(setup.ds_config(row->choice))
                  .at("zero_optimization")
                  .dump();
      const std::string host = format_bytes(row->memory.machine_total());
      taken_ = shares_host_memory(machine_.device)
                   ? fmt::format("each rank takes {} of memory", host)
                   : fmt::format("each rank takes {} of its GPU, and {} of host memory",
                                 format_bytes(row->memory.total()), host);
      return;
    }
    fail(ErrorCode::out_of_memory,
         "init: the model does not fit on {}{}; dstrain plan --help says how to plan for disks and "
         "for other machines",
         machine_.description, least_.empty() ? "" : ": " + least_);
  }

  [[nodiscard]] std::optional<zero::PlanRow> cheapest(const PlanSetup& setup) {
    const bool on_cpu = shares_host_memory(machine_.device);
    std::vector<MemoryTier> tiers{MemoryTier::device};
    if (!on_cpu) tiers.push_back(MemoryTier::host);
    const std::vector<zero::PlanRow> rows = setup.rows(tiers);
    std::vector<zero::PlanRow> fit = zero::rows_that_fit(rows, {.device = machine_.device_memory,
                                                                .host = machine_.host_memory,
                                                                .ranks_per_node = machine_.ranks});
    // A CPU's device memory is the host's, in which saving takes some, too.
    std::erase_if(fit, [&](const zero::PlanRow& row) {
      return on_cpu && row.memory.machine_total() > machine_.device_memory;
    });
    if (!fit.empty()) return fit.front();
    if (on_cpu && !rows.empty()) {
      const auto least = std::ranges::min(
          rows, {}, [](const zero::PlanRow& row) { return row.memory.machine_total(); });
      least_ = fmt::format("a rank takes at least {}, and may take {} of what is free",
                           format_bytes(least.memory.machine_total()),
                           format_bytes(machine_.device_memory));
    }
    return std::nullopt;
  }

  void choose_output() {
    heading_ = "What to keep";
    const std::string when = tunes_ ? "epoch" : "steps";
    if (typed_.validation_file.typed() || typed_.split.typed()) {
      choose(typed_.eval_strategy, "eval_strategy", when, "evaluate the held-out data");
      if (!tunes_) choose(typed_.eval_steps, "eval_steps", "0.1", "a share of all steps");
    }
    choose(typed_.output_dir, "output_dir", free_directory(),
           "checkpoints, metrics.jsonl and the model");
    choose(typed_.save_strategy, "save_strategy", when, "checkpoints to resume from");
    if (!tunes_) choose(typed_.save_steps, "save_steps", "0.1", "a share of all steps");
    choose(typed_.save_total_limit, "save_total_limit", "2", "the newest ones");
    choose(typed_.logging_steps, "logging_steps", "10", "a line each");
  }

  /// Runs the checks of a launch, so that the written file runs as it is. Large text takes long to
  /// tokenize; only its existence is checked.
  void check_run() const {
    constexpr std::uintmax_t read_max = 256 * mebibyte;
    std::vector<std::string> words = words_;
    words.push_back(fmt::format("--deepspeed={{\"zero_optimization\": {}}}", zero_));
    const config::TrainOptions options = config::parse_train_options(words);
    config::check_train_paths(options);
    if (bytes_of(options.train_file.value) + bytes_of(options.validation_file.value) > read_max) {
      return;
    }
    set_up_training(
        options,
        {.world_size = machine_.ranks, .device = machine_.device, .node_ranks = machine_.ranks});
  }

  const bool tunes_;
  const Machine& machine_;
  std::vector<std::string> words_;  ///< for train
  const config::TrainOptions typed_;
  std::string heading_;  ///< for the next line
  std::string lines_;
  std::string zero_;   ///< the section zero_optimization
  std::string taken_;  ///< memory, for people
  std::string least_;  ///< what is missing if nothing fits
};

/// Refuses a file that cannot be written, before looking at anything else.
void check_file(const std::string& file) {
  if (file.empty()) fail(ErrorCode::usage, "init: --output: needs a value");
  if (file == to_stdout) return;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    fail(ErrorCode::usage, "init: --output {}: there is no directory {}", file, folder.string());
  }
  if (std::filesystem::exists(file, ignored)) {
    fail(ErrorCode::usage, "init: {} exists; name another with --output", file);
  }
}

}  // namespace

int init_command(std::span<const std::string> arguments) {
  InitOptions options;
  CLI::App app{"Writes a file of options that fits this machine, a model and data.",
               "dstrain init"};
  declare_init(app, options);
  if (!parse_tool_options(app, arguments)) return status::done;
  check_file(options.file);
  options.given = config::ExpandedArguments(app.remaining());
  for (const std::string& warning : options.given.warnings()) log_warning(warning);
  const Machine machine = look_at_machine(options);
  const std::string text =
      config::located(options.given.places(), [&] { return RunFile(options, machine).text(); });
  if (options.file == to_stdout) {
    fmt::print("{}", text);
    return status::done;
  }
  write_text_file(options.file, text);
  fmt::print("wrote {}; start it with\n  dstrain --num_gpus {} train {}\n", options.file,
             machine.ranks, options.file);
  return status::done;
}

}  // namespace dstrain::cmd
