#include "launcher/plan/option_flags.h"

#include <array>
#include <string>

#include <CLI/CLI.hpp>

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

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

/// Options that stand together in the help text.
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
  group.option("-H,--hostfile", o.hostfile, "lines \"NAME slots=N\" (default /job/hostfile)");
  group.option("-i,--include", o.include, "NODE[:SLOT,SLOT...][@NODE...], nothing else");
  group.option("-e,--exclude", o.exclude, "the same grammar: everything but these");
  group.option("--num_nodes", raw.num_nodes, "the first N hosts of the hostfile");
  group.option("--num_gpus,--num_accelerators", raw.num_gpus,
               "slots 0..N-1 of every node: GPUs where there are some, else CPU ranks");
  group.option("--master_addr", o.master_addr,
               "where rank 0 listens (default: the address that the other hosts reach it by)");
  group.option("--master_port", o.master_port, "default 29500, or the next free port");
  group.option("--launcher", o.launcher,
               "auto, local or ssh; auto: ssh when other hosts are named");
  group.option("--ssh_port", o.ssh_port, "of sshd on all hosts (default: ssh_config's, else 22)");
  group.option("--ssh_config", o.ssh_config,
               "a file like ~/.ssh/config, in place of that and of the system's");
  group.flag("--accept_new_host_keys", o.accept_new_host_keys,
             "note keys of hosts that known_hosts does not know; a changed key stays an error");
  group.flag("--copy_binary", o.copy_binary,
             "put these programs into ~/.cache/dstrain on each host, where they are not there yet");
  group.option("--ssh_command", raw.ssh_command,
               "a program with options that runs commands on hosts, started as CMD HOST COMMAND");
  group.flag("--no_ssh_check", raw.no_ssh_check, "accepted: there is no probe before connecting");
  group.flag("--force_multi", o.force_multi, "reach also this machine as if it were another");
  group.flag(
      "--no_ssh", o.no_ssh,
      "start this node's ranks only; the same command runs on every node, with its --node_rank");
  group.option("--node_rank", raw.node_rank, "with --no_ssh: which of the nodes this is, from 0");
  group.option("--device", o.device,
               "auto or cpu; cpu says that slots are CPU ranks, as train needs it where GPUs are");
  group.option("--device_memory", raw.device_memory, "budget per rank, for example 2GiB");
  group.flag("--oversubscribe", o.oversubscribe, "more ranks than devices or cores");
  group.flag(
      "--bind_cores_to_rank", o.bind_cores,
      "each rank runs on cores of its own, and has its memory there; OMP_NUM_THREADS is their "
      "number");
  group.option("--bind_core_list", raw.core_list,
               "the same, sharing these cores of each node only: 0-3,8");
}

void add_program(CLI::App& app, LaunchOptions& o) {
  const Group group(app, "What runs");
  group.flag("--module", o.module, "PROGRAM is a Python module: python3 -u -m PROGRAM");
  group.flag("--no_python", o.no_python, "start a name ending in .py directly, without python3");
  group.flag("--no_local_rank", o.no_local_rank,
             "no --local_rank=N as first argument; only .py programs and modules get it");
  group.option("--venv_script", o.venv_script,
               "a file that a shell sources on each node before it becomes the program");
  group.option("--env", o.env, "NAME[=VALUE] for the ranks' environment; may be repeated");
  app.get_option("--env")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
}

void add_job(CLI::App& app, CommandLine& line, RawOptions& raw) {
  LaunchOptions& o = line.options;
  const Group group(app, "The job");
  group.option("--enable_each_rank_log", o.each_rank_log_directory,
               "directory for <YYYYmmddHHMMSS>_rank<R>.log with both streams of each rank");
  group.flag("--save_pid", o.save_pid, "write the launcher's pid to <tmp>/<pid>.deepspeed");
  group.option("--log_level", o.log_level, "debug, info, warning, error or critical");
  group.flag("-q,--quiet", raw.quiet, "the same as --log_level error");
  group.option("--timeout", o.timeout_seconds, "seconds the ranks may take to meet (600)");
  group.option("--grace", o.grace_seconds,
               "seconds from asking ranks to stop to killing them (30; 1 after a crash)");
  group.option("--max_restarts", o.max_restarts,
               "begin again after failures; so many times without a new checkpoint in between (0)");
  group.flag("--dry_run", o.dry_run, "start nothing; print what would be, as one JSON object");
  group.flag("-h,--help", line.help, "print this text");
  group.flag("--version", line.version, "print the version");
}

void add_missing(CLI::App& app, const Missing& missing) {
  const auto refuse = [&missing](const auto&) {
    fail(ErrorCode::usage, "{}: {} is not built; leave the option out", missing.name,
         missing.feature);
  };
  if (missing.takes_value) {
    app.add_option_function<std::string>(missing.name, refuse)->group("");
  } else {
    app.add_flag_function(missing.name, refuse)->group("");
  }
}

}  // namespace

void add_option_flags(CLI::App& app, CommandLine& line, RawOptions& raw) {
  app.set_help_flag();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_placement(app, line.options, raw);
  add_program(app, line.options);
  add_job(app, line, raw);
  for (const Missing& option : missing_options) add_missing(app, option);
}

}  // namespace dstrain::launcher
