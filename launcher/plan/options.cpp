#include "launcher/plan/options.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "launcher/plan/foreign_options.h"
#include "launcher/plan/option_checks.h"
#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/config/train_flags.h"

namespace dstrain::launcher {
namespace {

/// A group of options in the help text.
class Group {
 public:
  Group(CLI::App& app, std::string name) : app_(app), name_(std::move(name)) {}
  template <class T>
  void option(const std::string& names, T& value, const char* text) const {
    app_.add_option(names, value, text)->group(name_);
  }
  void flag(const std::string& names, bool& value, const char* text) const {
    app_.add_flag(names, value, text)->group(name_);
  }

 private:
  CLI::App& app_;
  std::string name_;
};

void add_placement(CLI::App& app, LaunchOptions& o, RawOptions& raw) {
  const Group group(app, "Where ranks run");
  group.option("-H,--hostfile", o.hostfile,
               "file with a line \"NAME slots=N\" for each host [/job/hostfile]");
  group.option("-i,--include", o.include, "use only these: NODE[:SLOT,SLOT...][@NODE...]");
  group.option("-e,--exclude", o.exclude, "use all but these; same syntax");
  group.option("--num_nodes", raw.num_nodes, "use the first N hosts of the hostfile");
  group.option("--num_gpus,--num_accelerators", raw.num_gpus,
               "use slots 0..N-1 of each host: its visible GPUs, or CPU ranks if it has none");
  group.option("--master_addr", o.master_addr,
               "address at which rank 0 listens [the one that the other hosts reach]");
  group.option(
      "--master_port", o.master_port,
      "port of rank 0 [29500 or the next free one; with --port_range, the first free one]");
  group.option(
      "--port_range", raw.port_range,
      "listen only on ports FIRST-LAST, for firewalls; MPI and NCCL have their own settings [any]");
  group.option("--launcher", o.launcher,
               "start ranks with auto, local, ssh, openmpi, mpich or slurm [auto: slurm inside an "
               "allocation, ssh if other hosts are named, else local]");
  group.option("--launcher_args", raw.launcher_args,
               "pass these options to mpirun, mpiexec or srun: \"-x A --verbose\"");
  group.option("--ssh_port", o.ssh_port, "port of sshd on all hosts [from ssh_config, else 22]");
  group.option("--ssh_config", o.ssh_config,
               "read this file instead of ~/.ssh/config and the system's");
  group.flag("--accept_new_host_keys", o.accept_new_host_keys,
             "add unknown host keys to known_hosts; a changed key is still an error");
  group.flag("--copy_binary", o.copy_binary,
             "copy these programs to ~/.cache/dstrain on hosts that lack them");
  group.option("--ssh_command", raw.ssh_command,
               "connect with this client instead of libssh, started as CMD HOST COMMAND");
  group.flag("--no_ssh_check", raw.no_ssh_check,
             "accepted for compatibility; no probe precedes the connection");
  group.flag("--force_multi", o.force_multi, "reach this machine over the network too");
  group.flag(
      "--no_ssh", o.no_ssh,
      "start only this node's ranks; run the same command on every node with its --node_rank");
  group.option("--node_rank", raw.node_rank, "number of this node, from 0; with --no_ssh");
  group.option(
      "--device", o.device,
      "compute on auto, cuda or cpu [auto: cuda if there are GPUs and libdstrain_cuda.so]");
  group.option("--device_memory", raw.device_memory,
               "limit the device memory of each rank, for example to 2GiB");
  group.option("--host_memory", raw.host_memory,
               "limit the memory of all ranks of a node together, for example to 64GiB [what is "
               "available]");
  group.flag("--oversubscribe", o.oversubscribe, "allow more ranks than devices or cores");
  group.flag("--bind_cores_to_rank", o.bind_cores,
             "bind each rank to its own cores and to their NUMA node's memory");
  group.option("--bind_core_list", raw.core_list,
               "bind ranks to these cores of each node only: 0-3,8");
}

void add_program(CLI::App& app, LaunchOptions& o) {
  const Group group(app, "What runs");
  group.flag("--module", o.module, "run PROGRAM as a Python module: python3 -u -m PROGRAM");
  group.flag("--no_python", o.no_python, "run a name ending in .py directly, without python3");
  group.flag("--no_local_rank", o.no_local_rank,
             "do not pass --local_rank=N to .py programs and modules");
  group.option("--venv_script", o.venv_script,
               "source this file in a shell on each node before the program starts");
  group.option("--env", o.env, "set NAME[=VALUE] in the ranks' environment; may be repeated");
  app.get_option("--env")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
}

void add_job(CLI::App& app, CommandLine& line, RawOptions& raw) {
  LaunchOptions& o = line.options;
  const Group group(app, "The job");
  group.option("--enable_each_rank_log", o.each_rank_log_directory,
               "write the output of each rank to <YYYYmmddHHMMSS>_rank<R>.log in this directory");
  group.flag("--save_pid", o.save_pid, "write the launcher's pid to <tmp>/<pid>.deepspeed");
  group.option(
      "--log_level", o.log_level,
      "print messages of this level and above: debug, info, warning, error, critical [info]");
  group.flag("-q,--quiet", raw.quiet, "same as --log_level error");
  group.option("--timeout", o.timeout_seconds,
               "wait this many seconds for all ranks to connect [600]");
  group.option(
      "--grace", o.grace_seconds,
      "kill ranks this many seconds after a stop request, not counting the time in which a "
      "save progresses [30; 1 after a crash]");
  group.option(
      "--max_restarts", raw.max_restarts,
      "restart after a failure, at most N times without a new checkpoint [0; 100 if elastic]");
  group.flag("--elastic_training", raw.elastic_training,
             "continue on the remaining hosts when one is lost, with the same global batch");
  group.option("--min_elastic_nodes", raw.min_elastic_nodes,
               "same as --elastic_training; needs at least N hosts [1]");
  group.option("--max_elastic_nodes", raw.max_elastic_nodes,
               "same as --elastic_training; use at most N hosts, keep the others spare [all]");
  group.flag("--dry_run", o.dry_run, "start nothing; print what would start as one JSON object");
  group.flag("-h,--help", line.help, "print this text");
  group.flag("--version", line.version, "print the version; with --verbose also how it was built");
}

/// Gives the app all launch options, with their help texts. Parsing fills `line` and `raw`, which
/// are borrowed, and throws Error{usage} at an option whose feature is not supported.
void add_option_flags(CLI::App& app, CommandLine& line, RawOptions& raw) {
  app.set_help_flag();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_placement(app, line.options, raw);
  add_program(app, line.options);
  add_job(app, line, raw);
}

/// CLI11 does the conversions and the help text; split() decides which words belong to it.
class Parser {
 public:
  explicit Parser(CommandLine& line) : line_(line), app_("", "dstrain") {
    add_option_flags(app_, line_, raw_);
    check_typed_values(app_);
    // Empty values of these count as not given, as with DeepSpeed.
    constexpr std::array<std::string_view, 5> empty{"--hostfile", "--include", "--exclude",
                                                    "--launcher_args", "--master_addr"};
    refuse_empty_texts(app_, empty);
    show_plain_types(app_);
  }

  void parse(std::span<const std::string> arguments);
  [[nodiscard]] std::size_t words_at_front(std::span<const std::string> words) const;
  [[nodiscard]] std::string help() const {
    return CLI::Formatter().make_groups(&app_, CLI::AppFormatMode::Normal);
  }

 private:
  std::size_t split(std::span<const std::string> arguments, std::vector<std::string>& launch);
  const CLI::Option& known(const std::string& name, std::string_view value);

  CommandLine& line_;
  RawOptions raw_;
  CLI::App app_;
};

/// Refuses long options with one dash, as others write them: "-np", "-hostfile". CLI11 would read
/// -n and -h with a value.
void refuse_long_word(const std::string& word) {
  if (word.starts_with("--") || word.size() == 2) return;
  std::string name = word;
  std::replace(name.begin() + 1, name.end(), '-', '_');
  const std::string hint = hint_at_own_option(name);
  if (!hint.empty()) fail(ErrorCode::usage, "unknown launch option {}; {}", word, hint);
}

const CLI::Option& Parser::known(const std::string& name, std::string_view value) {
  if (const CLI::Option* found = app_.get_option_no_throw(name)) return *found;
  const std::string hint = hint_at_own_option(name, value);
  if (!hint.empty()) fail(ErrorCode::usage, "unknown launch option {}; {}", name, hint);
  if (name.starts_with("--") && config::find_flag(name.substr(2)) != nullptr) {
    fail(ErrorCode::usage,
         "{} is an option of train; write it after train: dstrain [launch options] train {} ...",
         name, name);
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(app_).get_options()) {
    for (const std::string& known_name : option->get_lnames()) names.push_back("--" + known_name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = suggest(name, views);
  if (near.empty()) {
    fail(ErrorCode::usage,
         "unknown launch option {}; write options of the program after its name (dstrain --help "
         "lists the launch options)",
         name);
  }
  fail(ErrorCode::usage, "unknown launch option {}; did you mean {}?", name, near);
}

/// "--num-gpus=2" -> "--num_gpus", "-n2" -> "-n".
std::string option_name(const std::string& word) {
  if (!word.starts_with("--")) return word.substr(0, 2);
  std::string name = word.substr(0, word.find('='));
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name == "--help_all" ? "--help" : name;  // all launch options are in the help
}

std::size_t Parser::words_at_front(std::span<const std::string> words) const {
  if (words.empty() || !words.front().starts_with('-')) return 0;
  const std::string name = option_name(words.front());
  const CLI::Option* const option = app_.get_option_no_throw(name);
  if (option == nullptr) return 0;
  const bool takes_next = option->get_items_expected_min() > 0 && words.size() > 1 &&
                          words.front().find('=') == std::string::npos;
  return takes_next ? 2 : 1;
}

/// Moves the launch options to `launch`, with names in one spelling; returns where the rest begins.
std::size_t Parser::split(std::span<const std::string> arguments,
                          std::vector<std::string>& launch) {
  for (std::size_t at = 0; at < arguments.size();) {
    std::string word = arguments[at];
    if (word == "--") {
      line_.after_dashes = true;
      return at + 1;
    }
    if (const std::string plain = with_plain_dashes(word); !plain.empty()) {
      fail(ErrorCode::usage, "{}: begins with a typographic dash; write {}", word, plain);
    }
    if (word.size() < 2 || word.front() != '-') return at;
    line_.launch_options_given = true;
    ++at;
    const bool is_long = word.starts_with("--");
    const std::size_t equals = is_long ? word.find('=') : word.npos;
    const std::string name = option_name(word);
    refuse_long_word(word);
    const std::string next = at < arguments.size() ? arguments[at] : "";
    const std::string value = equals == word.npos ? next : word.substr(equals + 1);
    const bool takes_value = known(name, value).get_items_expected_min() > 0;
    const bool joined = is_long ? equals != word.npos : word.size() > 2;
    launch.push_back(name);
    if (takes_value) {
      if (!joined && at == arguments.size()) {
        fail(ErrorCode::usage, "{}: a value is missing", name);
      }
      if (!joined && next == "train") fail(ErrorCode::usage, "{}: a value is missing", name);
      launch.push_back(joined ? word.substr(is_long ? equals + 1 : 2) : arguments[at++]);
    } else if (joined) {
      fail(ErrorCode::usage, "{}: takes no value", word);
    }
  }
  return arguments.size();
}

void Parser::parse(std::span<const std::string> arguments) {
  std::vector<std::string> launch;
  const std::size_t rest = split(arguments, launch);
  std::reverse(launch.begin(), launch.end());  // as CLI11 wants them
  try {
    app_.parse(launch);
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "{}", describe(error));
  }
  if (!line_.help && !line_.version) check_options(line_.options, raw_);
  line_.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(rest), arguments.end());
}

}  // namespace

CommandLine parse_command_line(std::span<const std::string> arguments) {
  CommandLine line;
  Parser(line).parse(arguments);
  return line;
}

std::size_t launch_option_words(std::span<const std::string> words) {
  CommandLine line;
  return Parser(line).words_at_front(words);
}

std::string launch_options_help() {
  CommandLine line;
  return Parser(line).help();
}

}  // namespace dstrain::launcher
