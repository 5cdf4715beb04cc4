#include "launcher/plan/option_checks.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include <fmt/ranges.h>

#include "launcher/plan/core_binding.h"
#include "launcher/plan/host_name.h"
#include "launcher/plan/hostfile.h"
#include "launcher/plan/task_launcher.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/base/units.h"
#include "runtime/base/utf8.h"

namespace dstrain::launcher {
namespace {

void check_number(std::string_view name, int value, int least, int most) {
  if (value < least || value > most) {
    fail(ErrorCode::usage, "{}: must be {}..{}, got {}", name, least, most, value);
  }
}

constexpr std::array<std::string_view, 6> launchers{"auto",    "local", "ssh",
                                                    "openmpi", "mpich", "slurm"};
constexpr std::array<std::string_view, 3> devices{"auto", "cuda", "cpu"};
constexpr std::array<std::string_view, 5> levels{"debug", "info", "warning", "error", "critical"};

void check_choice(std::string_view name,
                  std::string_view value,
                  std::span<const std::string_view> choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  const std::string near = suggest(value, choices);
  fail(ErrorCode::usage, "{}: \"{}\" is not one of {}{}", name, value, fmt::join(choices, ", "),
       near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

void check_launcher_and_device(const LaunchOptions& options) {
  constexpr std::array<std::string_view, 2> unbuilt{"mvapich", "impi"};
  if (options.launcher == "pdsh") {
    fail(ErrorCode::usage,
         "--launcher pdsh: not supported; did you mean ssh, which reaches all hosts of the "
         "hostfile at once?");
  }
  if (std::find(unbuilt.begin(), unbuilt.end(), options.launcher) != unbuilt.end()) {
    fail(ErrorCode::usage,
         "--launcher {}: not supported; use openmpi, mpich, slurm, or ssh, which reaches all hosts "
         "of the hostfile at once. Without any of them, run the command on each node with --no_ssh "
         "--node_rank R",
         options.launcher);
  }
  check_choice("--launcher", options.launcher, launchers);
  if (options.device == "gpu" || options.device == "GPU") {
    fail(ErrorCode::usage, "--device: \"{}\" is not one of {}; did you mean cuda?", *options.device,
         fmt::join(devices, ", "));
  }
  check_choice("--device", options.device.value_or("auto"), devices);
}

/// An empty value counts as not given, as with DeepSpeed: scripts write it for a single machine. It
/// may also come from an unset variable, hence the warning.
void check_hostfile(LaunchOptions& options) {
  if (options.hostfile != "") return;
  options.hostfile.reset();
  options.warnings.emplace_back("--hostfile is empty and has no effect");
}

/// Checks the options of our own SSH connections.
void check_ssh(const LaunchOptions& o) {
  if (o.ssh_port) check_number("--ssh_port", *o.ssh_port, 1, 65535);
  const char* const given = o.ssh_port               ? "--ssh_port"
                            : !o.ssh_config.empty()  ? "--ssh_config"
                            : o.accept_new_host_keys ? "--accept_new_host_keys"
                            : o.copy_binary          ? "--copy_binary"
                                                     : nullptr;
  if (given == nullptr) return;
  if (!o.ssh_command.empty()) {
    fail(ErrorCode::usage, "--ssh_command: the client has its own options; leave {} out", given);
  }
  if (o.launcher == "local" || o.no_ssh) {
    fail(ErrorCode::usage, "{} reaches no other host; leave {} out",
         o.no_ssh ? "--no_ssh" : "--launcher local", given);
  }
  if (task_launcher_named(o.launcher)) {
    fail(ErrorCode::usage, "--launcher {} does not use dstrain's SSH; leave {} out", o.launcher,
         given);
  }
}

void check_task_launcher(LaunchOptions& o, const RawOptions& raw) {
  const bool starts_tasks = task_launcher_named(o.launcher).has_value();
  if (starts_tasks && (o.no_ssh || o.force_multi || !o.ssh_command.empty())) {
    fail(ErrorCode::usage, "--launcher {} starts the ranks of all hosts; leave {} out", o.launcher,
         o.no_ssh        ? "--no_ssh"
         : o.force_multi ? "--force_multi"
                         : "--ssh_command");
  }
  if (raw.launcher_args.empty()) return;
  if (!starts_tasks && o.launcher != "auto") {
    fail(ErrorCode::usage,
         "--launcher_args: --launcher {} starts no program to pass them to; leave it out",
         o.launcher);
  }
  Result<std::vector<std::string>> words = split_words(raw.launcher_args);
  if (!words.ok()) fail(ErrorCode::usage, "--launcher_args: {}", words.error());
  o.launcher_args = words.value();
}

void check_nodes(LaunchOptions& o, const RawOptions& raw) {
  if (!raw.ssh_command.empty()) {
    Result<std::vector<std::string>> words = split_words(raw.ssh_command);
    if (!words.ok()) fail(ErrorCode::usage, "--ssh_command: {}", words.error());
    if (words.value().empty()) fail(ErrorCode::usage, "--ssh_command: names no program");
    o.ssh_command = words.value();
  }
  if (raw.node_rank != -1) {
    check_number("--node_rank", raw.node_rank, 0, static_cast<int>(hosts_max) - 1);
    o.node_rank = raw.node_rank;
  }
  if (o.no_ssh != o.node_rank.has_value()) {
    fail(ErrorCode::usage, "--no_ssh and --node_rank belong together; {} is missing",
         o.no_ssh ? "--node_rank" : "--no_ssh");
  }
  if (o.no_ssh && (o.force_multi || o.launcher == "ssh" || !o.ssh_command.empty())) {
    fail(ErrorCode::usage, "--no_ssh starts ranks on this node alone; leave {} out",
         o.force_multi ? "--force_multi" : "--launcher ssh and --ssh_command");
  }
  check_ssh(o);
  check_task_launcher(o, raw);
  if (o.launcher == "local" && (o.force_multi || !o.ssh_command.empty())) {
    fail(ErrorCode::usage, "--launcher local reaches no other host; leave {} out",
         o.force_multi ? "--force_multi" : "--ssh_command");
  }
  if (!o.venv_script.empty()) o.venv_script = std::filesystem::absolute(o.venv_script).string();
}

/// Any of three options makes a job elastic; -1 is DeepSpeed's way of saying "not given".
void check_elastic(LaunchOptions& o, const RawOptions& raw) {
  ElasticNodes nodes;
  if (raw.min_elastic_nodes != -1) {
    check_number("--min_elastic_nodes", raw.min_elastic_nodes, 1, hosts_max);
    nodes.min = raw.min_elastic_nodes;
  }
  if (raw.max_elastic_nodes != -1) {
    check_number("--max_elastic_nodes", raw.max_elastic_nodes, 1, hosts_max);
    nodes.max = raw.max_elastic_nodes;
  }
  if (nodes.max != 0 && nodes.min > nodes.max) {
    fail(ErrorCode::usage, "--min_elastic_nodes {}: must not be more than --max_elastic_nodes {}",
         nodes.min, nodes.max);
  }
  const char* const given = raw.elastic_training          ? "--elastic_training"
                            : raw.min_elastic_nodes != -1 ? "--min_elastic_nodes"
                            : raw.max_elastic_nodes != -1 ? "--max_elastic_nodes"
                                                          : nullptr;
  if (given == nullptr) return;
  if (o.no_ssh) {
    fail(ErrorCode::usage,
         "{}: cannot be combined with --no_ssh, where each node's launcher knows only its own node "
         "and cannot place ranks elsewhere; leave one of them out",
         given);
  }
  if (task_launcher_named(o.launcher)) {
    fail(ErrorCode::usage,
         "{}: --launcher {} ends the tasks of all hosts when one is lost; pass --launcher ssh, "
         "which starts each host separately",
         given, o.launcher);
  }
  o.elastic = nodes;
}

PortRange parse_ports(const std::string& text) {
  const Result<PortRange> range = parse_port_range(text);
  if (!range.ok()) fail(ErrorCode::usage, "--port_range: {}", range.error());
  return range.value();
}

}  // namespace

std::span<const std::string_view> launch_option_choices(std::string_view option) {
  if (option == "--launcher") return launchers;
  if (option == "--device") return devices;
  if (option == "--log_level" || option == "--log-level") return levels;
  return {};
}

Bytes parse_budget(const char* option, const std::string& text) {
  const Result<Bytes> bytes = parse_bytes(text);
  if (!bytes.ok()) fail(ErrorCode::usage, "{}: {}", option, bytes.error());
  if (bytes.value() < 1) fail(ErrorCode::usage, "{}: must be more than 0", option);
  return bytes.value();
}

void check_options(LaunchOptions& o, const RawOptions& raw) {
  o.launcher = lower_case(o.launcher);  // DeepSpeed's help names "OpenMPI" and "SLURM"
  check_launcher_and_device(o);
  check_hostfile(o);
  check_nodes(o, raw);
  check_choice("--log_level", o.log_level, levels);
  if (raw.quiet) o.log_level = "error";
  if (raw.num_nodes != -1) {  // -1 is DeepSpeed's way of saying "not given"
    check_number("--num_nodes", raw.num_nodes, 1, hosts_max);
    o.num_nodes = raw.num_nodes;
  }
  if (raw.num_gpus != -1) {
    check_number("--num_gpus", raw.num_gpus, 1, slots_max);
    o.num_gpus = raw.num_gpus;
  }
  if (o.master_port) check_number("--master_port", *o.master_port, 1, 65535);
  o.port_range = raw.port_range ? parse_ports(*raw.port_range) : read_port_range();
  check_elastic(o, raw);
  constexpr int elastic_restarts = 100;  // as DeepSpeed's elastic agent
  o.max_restarts = raw.max_restarts.value_or(o.elastic ? elastic_restarts : 0);
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
    fail(ErrorCode::usage, "--module and --no_python exclude each other; leave one of them out");
  }
  if (raw.core_list) o.core_list = parse_core_list(*raw.core_list);
  o.bind_cores |= !o.core_list.empty();
  if (o.bind_cores) check_can_bind_cores();
  if (raw.device_memory)
    o.device_memory_bytes = parse_budget("--device_memory", *raw.device_memory);
  if (raw.host_memory) o.host_memory_bytes = parse_budget("--host_memory", *raw.host_memory);
}

}  // namespace dstrain::launcher
