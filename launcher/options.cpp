#include "launcher/options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <CLI/CLI.hpp>

#include "launcher/core_binding.h"
#include "launcher/core_list.h"
#include "launcher/host_name.h"
#include "launcher/hostfile.h"
#include "launcher/words.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/config/suggest.h"

namespace dstrain::launcher {
namespace {

/// Values that need more than CLI11's conversion.
struct RawValues {
  int num_nodes = -1;
  int num_gpus = -1;
  int node_rank = -1;
  std::string ssh_command;
  bool no_ssh_check = false;  // every connection is a check
  std::string device_memory;
  std::string core_list;
  bool quiet = false;
};

/// A known option whose feature is not supported: typed, it is refused.
struct Missing {
  const char* name;
  bool takes_value;
  const char* feature;
};

constexpr std::array<Missing, 4> missing_options{{
    {"--launcher_args", true, "launching through mpirun or srun"},
    {"--min_elastic_nodes", true, "elastic training"},
    {"--max_elastic_nodes", true, "elastic training"},
    {"--elastic_training", false, "elastic training"},
}};

constexpr std::string_view placement_group = "Where ranks run";
constexpr std::string_view program_group = "What runs";
constexpr std::string_view job_group = "The job";

/// CLI11 does the conversions and the help text; which words belong to it is decided by split().
class Parser {
 public:
  explicit Parser(CommandLine& line) : line_(line), app_("", "dstrain") {
    app_.set_help_flag();
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_placement();
    add_program();
    add_job();
    for (const Missing& option : missing_options) {
      add_missing(option);
    }
  }

  void parse(std::span<const std::string> arguments);
  [[nodiscard]] std::string help() const {
    return CLI::Formatter().make_groups(&app_, CLI::AppFormatMode::Normal);
  }

 private:
  template <class T>
  void option(std::string_view group, const std::string& names, T& value, const char* text) {
    app_.add_option(names, value, text)->group(std::string(group));
  }
  void flag(std::string_view group, const std::string& names, bool& value, const char* text) {
    app_.add_flag(names, value, text)->group(std::string(group));
  }
  void add_placement();
  void add_program();
  void add_job();
  void add_missing(const Missing& option);
  std::size_t split(std::span<const std::string> arguments, std::vector<std::string>& launch);
  const CLI::Option& known(const std::string& name);
  void check();
  void check_nodes();
  void check_ssh();

  CommandLine& line_;
  RawValues raw_;
  CLI::App app_;
};

void Parser::add_placement() {
  LaunchOptions& o = line_.options;
  const auto group = placement_group;
  option(group, "-H,--hostfile", o.hostfile, "lines \"NAME slots=N\" (default /job/hostfile)");
  option(group, "-i,--include", o.include, "NODE[:SLOT,SLOT...][@NODE...], nothing else");
  option(group, "-e,--exclude", o.exclude, "the same grammar: everything but these");
  option(group, "--num_nodes", raw_.num_nodes, "the first N hosts of the hostfile");
  option(group, "--num_gpus,--num_accelerators", raw_.num_gpus,
         "slots 0..N-1 of every node; a slot is a CPU rank where there is no GPU");
  option(group, "--master_addr", o.master_addr,
         "where rank 0 listens (default: the address that the other hosts reach it by)");
  option(group, "--master_port", o.master_port, "default 29500, or the next free port");
  option(group, "--launcher", o.launcher,
         "auto, local or ssh; auto: ssh when other hosts are named");
  option(group, "--ssh_port", o.ssh_port, "of sshd on all hosts (default: ssh_config's, else 22)");
  option(group, "--ssh_config", o.ssh_config,
         "a file like ~/.ssh/config, in place of that and of the system's");
  flag(group, "--accept_new_host_keys", o.accept_new_host_keys,
       "note keys of hosts that known_hosts does not know; a changed key stays an error");
  flag(group, "--copy_binary", o.copy_binary,
       "put these programs into ~/.cache/dstrain on each host, where they are not there yet");
  option(group, "--ssh_command", raw_.ssh_command,
         "a program with options that runs commands on hosts, started as CMD HOST COMMAND");
  flag(group, "--no_ssh_check", raw_.no_ssh_check, "accepted: there is no probe before connecting");
  flag(group, "--force_multi", o.force_multi, "reach also this machine as if it were another");
  flag(group, "--no_ssh", o.no_ssh,
       "start this node's ranks only; the same command runs on every node, with its --node_rank");
  option(group, "--node_rank", raw_.node_rank, "with --no_ssh: which of the nodes this is, from 0");
  option(group, "--device", o.device, "auto or cpu");
  option(group, "--device_memory", raw_.device_memory, "budget per rank, for example 2GiB");
  flag(group, "--oversubscribe", o.oversubscribe, "more ranks than devices or cores");
  flag(group, "--bind_cores_to_rank", o.bind_cores,
       "each rank runs on cores of its own, and has its memory there; OMP_NUM_THREADS is their "
       "number");
  option(group, "--bind_core_list", raw_.core_list,
         "the same, sharing these cores of each node only: 0-3,8");
}

void Parser::add_program() {
  LaunchOptions& o = line_.options;
  const auto group = program_group;
  flag(group, "--module", o.module, "PROGRAM is a Python module: python3 -u -m PROGRAM");
  flag(group, "--no_python", o.no_python, "start a name ending in .py directly, without python3");
  flag(group, "--no_local_rank", o.no_local_rank,
       "no --local_rank=N as first argument; only .py programs and modules get it");
  option(group, "--venv_script", o.venv_script,
         "a file that a shell sources on each node before it becomes the program");
  option(group, "--env", o.env, "NAME[=VALUE] for the ranks' environment; may be repeated");
  app_.get_option("--env")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
}

void Parser::add_job() {
  LaunchOptions& o = line_.options;
  const auto group = job_group;
  option(group, "--enable_each_rank_log", o.each_rank_log_directory,
         "directory for <YYYYmmddHHMMSS>_rank<R>.log with both streams of each rank");
  flag(group, "--save_pid", o.save_pid, "write the launcher's pid to <tmp>/<pid>.deepspeed");
  option(group, "--log_level", o.log_level, "debug, info, warning, error or critical");
  flag(group, "-q,--quiet", raw_.quiet, "the same as --log_level error");
  option(group, "--timeout", o.timeout_seconds, "seconds the ranks may take to meet (600)");
  option(group, "--grace", o.grace_seconds,
         "seconds from asking ranks to stop to killing them (30; 1 after a crash)");
  option(group, "--max_restarts", o.max_restarts,
         "begin again after failures; so many times without a new checkpoint in between (0)");
  flag(group, "--dry_run", o.dry_run, "start nothing; print what would be, as one JSON object");
  flag(group, "-h,--help", line_.help, "print this text");
  flag(group, "--version", line_.version, "print the version");
}

void Parser::add_missing(const Missing& missing) {
  const auto refuse = [&missing](const auto&) {
    fail(ErrorCode::usage, "{}: {} is not supported; leave the option out", missing.name,
         missing.feature);
  };
  if (missing.takes_value) {
    app_.add_option_function<std::string>(missing.name, refuse)->group("");
  } else {
    app_.add_flag_function(missing.name, refuse)->group("");
  }
}

const CLI::Option& Parser::known(const std::string& name) {
  if (const CLI::Option* found = app_.get_option_no_throw(name)) return *found;
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(app_).get_options()) {
    for (const std::string& known_name : option->get_lnames()) names.push_back("--" + known_name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = config::suggest(name, views);
  if (near.empty()) {
    fail(ErrorCode::usage,
         "unknown launch option {}; options of the program stand after its name "
         "(dstrain --help lists the launch options)",
         name);
  }
  fail(ErrorCode::usage, "unknown launch option {}; did you mean {}?", name, near);
}

/// Moves the launch options to `launch`, with names in one spelling; returns where the rest begins.
std::size_t Parser::split(std::span<const std::string> arguments,
                          std::vector<std::string>& launch) {
  for (std::size_t at = 0; at < arguments.size();) {
    std::string word = arguments[at];
    if (word == "--") return at + 1;
    if (word.size() < 2 || word.front() != '-') return at;
    line_.launch_options_given = true;
    ++at;
    const bool is_long = word.starts_with("--");
    const std::size_t equals = is_long ? word.find('=') : word.npos;
    std::string name = is_long ? word.substr(0, equals) : word.substr(0, 2);
    if (is_long) std::replace(name.begin() + 2, name.end(), '-', '_');
    const bool takes_value = known(name).get_items_expected_min() > 0;
    const bool joined = is_long ? equals != word.npos : word.size() > 2;
    launch.push_back(name);
    if (takes_value) {
      if (!joined && at == arguments.size()) {
        fail(ErrorCode::usage, "{}: a value is missing", name);
      }
      launch.push_back(joined ? word.substr(is_long ? equals + 1 : 2) : arguments[at++]);
    } else if (joined) {
      fail(ErrorCode::usage, "{}: takes no value", word);
    }
  }
  return arguments.size();
}

void check_number(std::string_view name, int value, int least, int most) {
  if (value < least || value > most) {
    fail(ErrorCode::usage, "{}: must be {}..{}, got {}", name, least, most, value);
  }
}

void check_choice(std::string_view name,
                  std::string_view value,
                  std::span<const std::string_view> choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  const std::string near = config::suggest(value, choices);
  fail(ErrorCode::usage, "{}: \"{}\" is not one of {}{}", name, value, fmt::join(choices, ", "),
       near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

void check_launcher_and_device(const LaunchOptions& options) {
  constexpr std::array<std::string_view, 6> launchers{"auto",    "local", "ssh",
                                                      "openmpi", "mpich", "slurm"};
  constexpr std::array<std::string_view, 3> devices{"auto", "cuda", "cpu"};
  check_choice("--launcher", options.launcher, launchers);
  check_choice("--device", options.device.value_or("auto"), devices);
  if (options.launcher != "auto" && options.launcher != "local" && options.launcher != "ssh") {
    fail(ErrorCode::usage,
         "--launcher {}: not supported; ssh runs on all hosts, local on this machine",
         options.launcher);
  }
  if (options.device == "cuda") {
    fail(ErrorCode::usage, "--device cuda: not supported; cpu and auto are");
  }
}

/// The options of our own connections.
void Parser::check_ssh() {
  const LaunchOptions& o = line_.options;
  if (o.ssh_port) check_number("--ssh_port", *o.ssh_port, 1, 65535);
  const char* const given = o.ssh_port               ? "--ssh_port"
                            : !o.ssh_config.empty()  ? "--ssh_config"
                            : o.accept_new_host_keys ? "--accept_new_host_keys"
                            : o.copy_binary          ? "--copy_binary"
                                                     : nullptr;
  if (given == nullptr) return;
  if (!o.ssh_command.empty()) {
    fail(ErrorCode::usage, "--ssh_command: the client has options of its own; leave {} out", given);
  }
  if (o.launcher == "local" || o.no_ssh) {
    fail(ErrorCode::usage, "{} reaches no other host; leave {} out",
         o.no_ssh ? "--no_ssh" : "--launcher local", given);
  }
}

void Parser::check_nodes() {
  LaunchOptions& o = line_.options;
  if (!raw_.ssh_command.empty()) {
    Result<std::vector<std::string>> words = split_words(raw_.ssh_command);
    if (!words.ok()) fail(ErrorCode::usage, "--ssh_command: {}", words.error());
    if (words.value().empty()) fail(ErrorCode::usage, "--ssh_command: names no program");
    o.ssh_command = words.value();
  }
  if (raw_.node_rank != -1) {
    check_number("--node_rank", raw_.node_rank, 0, static_cast<int>(hosts_max) - 1);
    o.node_rank = raw_.node_rank;
  }
  if (o.no_ssh != o.node_rank.has_value()) {
    fail(ErrorCode::usage, "--no_ssh and --node_rank belong together; {} is missing",
         o.no_ssh ? "--node_rank" : "--no_ssh");
  }
  if (o.no_ssh && (o.force_multi || o.launcher == "ssh" || !o.ssh_command.empty())) {
    fail(ErrorCode::usage, "--no_ssh starts ranks on this node alone; leave {} out",
         o.force_multi ? "--force_multi" : "--launcher ssh and --ssh_command");
  }
  check_ssh();
  if (o.launcher == "local" && (o.force_multi || !o.ssh_command.empty())) {
    fail(ErrorCode::usage, "--launcher local reaches no other host; leave {} out",
         o.force_multi ? "--force_multi" : "--ssh_command");
  }
  if (!o.venv_script.empty()) o.venv_script = std::filesystem::absolute(o.venv_script).string();
}

void Parser::check() {
  LaunchOptions& o = line_.options;
  check_nodes();
  constexpr std::array<std::string_view, 5> levels{"debug", "info", "warning", "error", "critical"};
  check_choice("--log_level", o.log_level, levels);
  if (raw_.quiet) o.log_level = "error";
  check_launcher_and_device(o);
  if (raw_.num_nodes != -1) {  // -1 is DeepSpeed's way of saying "not given"
    check_number("--num_nodes", raw_.num_nodes, 1, hosts_max);
    o.num_nodes = raw_.num_nodes;
  }
  if (raw_.num_gpus != -1) {
    check_number("--num_gpus", raw_.num_gpus, 1, slots_max);
    o.num_gpus = raw_.num_gpus;
  }
  if (o.master_port) check_number("--master_port", *o.master_port, 1, 65535);
  check_number("--max_restarts", o.max_restarts, 0, 1 << 20);
  if (o.timeout_seconds) check_number("--timeout", *o.timeout_seconds, 1, 1 << 20);
  if (o.grace_seconds && !(*o.grace_seconds >= 0 && *o.grace_seconds <= 1e6)) {
    fail(ErrorCode::usage, "--grace: must be 0..1000000 seconds");
  }
  if (!o.master_addr.empty() && !is_host_name(o.master_addr)) {
    fail(ErrorCode::usage, "--master_addr: \"{}\" is not a host name or address", o.master_addr);
  }
  if (o.each_rank_log_directory == "None") o.each_rank_log_directory.clear();
  if (o.module && o.no_python) {
    fail(ErrorCode::usage, "--module and --no_python exclude each other");
  }
  if (!raw_.core_list.empty()) o.core_list = parse_core_list(raw_.core_list);
  o.bind_cores |= !o.core_list.empty();
  if (o.bind_cores) check_can_bind_cores();
  if (raw_.device_memory.empty()) return;
  const Result<Bytes> bytes = parse_bytes(raw_.device_memory);
  if (!bytes.ok()) fail(ErrorCode::usage, "--device_memory: {}", bytes.error());
  if (bytes.value() < 1) fail(ErrorCode::usage, "--device_memory: must be more than 0");
  o.device_memory_bytes = bytes.value();
}

void Parser::parse(std::span<const std::string> arguments) {
  std::vector<std::string> launch;
  const std::size_t rest = split(arguments, launch);
  std::reverse(launch.begin(), launch.end());  // as CLI11 wants them
  try {
    app_.parse(launch);
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "{}", error.what());
  }
  if (!line_.help && !line_.version) check();
  line_.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(rest), arguments.end());
}

}  // namespace

CommandLine parse_command_line(std::span<const std::string> arguments) {
  CommandLine line;
  Parser(line).parse(arguments);
  return line;
}

std::string launch_options_help() {
  CommandLine line;
  return Parser(line).help();
}

}  // namespace dstrain::launcher
