#pragma once
#include <span>
#include <string>

#include "launcher/plan/options.h"

namespace dstrain::cmd {

/// `dstrain agent`: see launcher/agent/agent.h.
int agent_command(std::span<const std::string> arguments);

/// `dstrain checkpoint list|verify|prune|export DIR ...`.
int checkpoint_command(std::span<const std::string> arguments);

/// `dstrain zero_to_fp32 DIR OUT ...`: checkpoint export.
int zero_to_fp32_command(std::span<const std::string> arguments);

/// `dstrain config check|show FILE ...`.
int config_command(std::span<const std::string> arguments);

/// `dstrain estimate ...`: DeepSpeed's memory estimator.
int estimate_command(std::span<const std::string> arguments);

/// `dstrain plan ...`: stages and offloads that fit into given memory.
int plan_command(std::span<const std::string> arguments);

/// `dstrain init pretrain|finetune ...`: writes a file of options that fits this machine.
int init_command(std::span<const std::string> arguments);

/// `dstrain tokenize ... FILE...`: text to token shards.
int tokenize_command(std::span<const std::string> arguments);

/// `dstrain doctor [--hostfile H] ...`: checks this machine, or every host of a job. Unlike other
/// tools it takes the launch options that name hosts and say how to reach them.
int doctor_command(std::span<const std::string> arguments);

/// `dstrain status [JOB] [--json]`, `dstrain save JOB`, `dstrain stop JOB`: a running job.
int status_command(std::span<const std::string> arguments);
int save_command(std::span<const std::string> arguments);
int stop_command(std::span<const std::string> arguments);

/// `dstrain completion bash|zsh|fish`: the script with which a shell completes.
int completion_command(std::span<const std::string> arguments);

/// `dstrain complete WORD... CURRENT`: prints what the last word of a command line, which may be
/// empty, can become, a line each. For the scripts.
int complete_command(std::span<const std::string> arguments);

/// The commit of the sources, with "-dirty" if they were changed; empty outside of a repository.
/// Defined by commit.cmake.
const char* built_commit();

/// `dstrain --version`; `verbose`: with the commit, the compiler, plug-ins, libraries and
/// processor.
void print_version(bool verbose);

struct CommandInfo;

/// `dstrain [launch options] train|generate|PROGRAM ...`. `daemon`: the command if dstraind runs
/// it; null: any program.
int launch_command(launcher::CommandLine line, const CommandInfo* daemon);

/// The names a first word may have.
struct CommandInfo {
  enum class Kind {
    tool,   ///< runs in this process; takes no launch options
    daemon  ///< runs in dstraind, one process per rank
  };
  std::string_view name;
  Kind kind;
  std::string_view summary;                            ///< for --help; empty: not listed
  int (*run)(std::span<const std::string> arguments);  ///< of a tool, without its own name
};

std::span<const CommandInfo> all_commands();

/// The command with this name, or null.
const CommandInfo* find_command(std::string_view name);

}  // namespace dstrain::cmd
