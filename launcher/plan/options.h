#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/process/process.h"
#include "runtime/rank/port_range.h"

namespace dstrain::launcher {

inline constexpr int default_master_port = 29500;

/// How many hosts an elastic job may have.
struct ElasticNodes {
  int min = 1;
  int max = 0;  ///< 0: all
};

/// The launch options as typed. An absent optional, or an empty text, was not typed.
struct LaunchOptions {
  std::optional<std::string> hostfile;
  std::string include;
  std::string exclude;
  std::optional<int> num_nodes;
  std::optional<int> num_gpus;
  std::string master_addr;
  std::optional<int> master_port;
  std::optional<PortRange> port_range;
  std::string launcher = "auto";
  std::vector<std::string> launcher_args;  ///< words for srun, mpirun or mpiexec
  std::optional<int> ssh_port;
  std::string ssh_config;
  bool accept_new_host_keys = false;
  bool copy_binary = false;
  std::vector<std::string> ssh_command;  ///< words of a client program; empty: none
  bool force_multi = false;
  bool no_ssh = false;
  std::optional<int> node_rank;         ///< only and always with no_ssh
  std::vector<std::string> node_names;  ///< likewise, if SLURM's step names them
  std::string venv_script;              ///< absolute
  bool module = false;
  bool no_python = false;
  bool no_local_rank = false;
  std::string each_rank_log_directory;
  bool save_pid = false;
  std::string log_level = "info";
  std::optional<std::string> device;
  std::int64_t device_memory_bytes = 0;  ///< 0: no budget
  std::int64_t host_memory_bytes = 0;    ///< likewise
  bool oversubscribe = false;
  bool bind_cores = false;
  std::vector<int> core_list;  ///< to be shared by the ranks of a node; empty: all cores
  std::optional<int> timeout_seconds;
  std::optional<double> grace_seconds;
  std::vector<std::string> env;   ///< NAME or NAME=VALUE, in order
  std::vector<EnvVar> env_files;  ///< what read_env_files() has found
  int max_restarts = 0;
  std::optional<ElasticNodes> elastic;  ///< the job continues on the hosts that are left
  bool dry_run = false;
  std::vector<std::string> warnings;  ///< warnings about the words, for the user
};

/// A command line in its two parts.
struct CommandLine {
  LaunchOptions options;
  bool help = false;
  bool version = false;
  bool launch_options_given = false;
  bool after_dashes = false;         ///< the command stands after --
  std::vector<std::string> command;  ///< the command or program and its arguments, byte for byte
};

/// Splits at the first word that is neither option nor an option's value; ignores the rest. '-' and
/// '_' are the same within an option's name; the last of repeated options counts. Throws
/// Error{usage} for unknown options ("did you mean"), wrong values, and options whose feature is
/// not supported.
CommandLine parse_command_line(std::span<const std::string> arguments);

/// How many of `words` a launch option at their front takes, its value included; 0: there is none.
std::size_t launch_option_words(std::span<const std::string> words);

/// One paragraph per option, for --help.
std::string launch_options_help();

}  // namespace dstrain::launcher
