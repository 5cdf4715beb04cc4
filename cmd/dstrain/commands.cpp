#include "cmd/dstrain/commands.h"

#include <algorithm>
#include <array>

#include "cmd/dstrain/launch_bench.h"

namespace dstrain::cmd {
namespace {

using Kind = CommandInfo::Kind;

constexpr std::array<CommandInfo, 20> commands{{
    {"train", Kind::daemon, "train a model (options: dstrain train --help)", nullptr},
    {"generate", Kind::daemon, "generate text with a trained model", nullptr},
    {"chat", Kind::daemon, "talk with a trained model in the terminal", nullptr},
    {"evaluate", Kind::daemon, "evaluate a model on held-out data or multiple-choice questions",
     nullptr},
    {"bench", Kind::daemon, "benchmark this machine: gemm, comm, adam, checkpoint, io, launch",
     nullptr},
    {"checkpoint", Kind::tool, "list, verify, prune or export the checkpoints of a run",
     checkpoint_command},
    {"zero_to_fp32", Kind::tool, "alias of checkpoint export", zero_to_fp32_command},
    {"status", Kind::tool, "show running jobs: step, loss, tokens/s, ranks", status_command},
    {"save", Kind::tool, "save a checkpoint of a running training now", save_command},
    {"stop", Kind::tool, "stop a running job; a training saves a checkpoint first", stop_command},
    {"config", Kind::tool, "check or show a configuration file", config_command},
    {"estimate", Kind::tool, "estimate the memory of model states, by DeepSpeed's formulas",
     estimate_command},
    {"plan", Kind::tool, "list the configurations that fit into a given memory, fastest first",
     plan_command},
    {"init", Kind::tool, "write a file of train's options that fits this machine, model and data",
     init_command},
    {"tokenize", Kind::tool, "convert text to token files, or learn a tokenizer", tokenize_command},
    {"doctor", Kind::tool, "check this machine or every host, and print remedies", doctor_command},
    {"completion", Kind::tool, "print a script that completes commands in bash, zsh or fish",
     completion_command},
    {"complete", Kind::tool, "", complete_command},
    {"agent", Kind::tool, "", agent_command},
    {"meet", Kind::tool, "", meet_command},
}};

}  // namespace

std::span<const CommandInfo> all_commands() {
  return commands;
}

const CommandInfo* find_command(std::string_view name) {
  const auto* const found =
      std::find_if(commands.begin(), commands.end(),
                   [name](const CommandInfo& command) { return command.name == name; });
  return found == commands.end() ? nullptr : found;
}

}  // namespace dstrain::cmd
