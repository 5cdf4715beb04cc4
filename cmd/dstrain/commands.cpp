#include "cmd/dstrain/commands.h"

#include <algorithm>
#include <array>

#include "cmd/dstrain/launch_bench.h"
#include "runtime/base/error.h"

namespace dstrain::cmd {
namespace {

using Kind = CommandInfo::Kind;

constexpr std::array<CommandInfo, 15> commands{{
    {"train", Kind::daemon, "train a model; options: dstrain train --help", nullptr},
    {"generate", Kind::daemon, "write text with a trained model", nullptr},
    {"bench", Kind::daemon,
     "what this machine can do and what we reach: gemm, comm, adam, checkpoint, io, launch",
     nullptr},
    {"checkpoint", Kind::tool, "list, verify, prune or export the checkpoints of a run",
     checkpoint_command},
    {"zero_to_fp32", Kind::tool, "another name of checkpoint export", zero_to_fp32_command},
    {"status", Kind::tool, "what a running job does: step, loss, ranks", status_command},
    {"save", Kind::tool, "ask a running training for a checkpoint now", save_command},
    {"stop", Kind::tool, "stop a running job, a training with a checkpoint", stop_command},
    {"config", Kind::tool, "check or show a configuration file", config_command},
    {"estimate", Kind::tool, "memory of a model's states, by DeepSpeed's formulas",
     estimate_command},
    {"plan", Kind::tool, "what fits into given memory, fastest first, with the configuration",
     plan_command},
    {"tokenize", Kind::tool, "text to token files, or a tokenizer learnt from it",
     tokenize_command},
    {"doctor", Kind::tool, "what is installed, reachable and usable on each host, and why not",
     doctor_command},
    {"agent", Kind::tool, "", agent_command},
    {"meet", Kind::tool, "", meet_command},
}};

/// Refused with the reason rather than looked up as programs: those are started as ./NAME.
constexpr std::array<std::string_view, 1> unbuilt{"evaluate"};

}  // namespace

std::span<const CommandInfo> all_commands() {
  return commands;
}

const CommandInfo* find_command(std::string_view name) {
  if (std::find(unbuilt.begin(), unbuilt.end(), name) != unbuilt.end()) {
    fail(ErrorCode::usage, "the command {} is not implemented; a program of that name: ./{}", name,
         name);
  }
  const auto* const found =
      std::find_if(commands.begin(), commands.end(),
                   [name](const CommandInfo& command) { return command.name == name; });
  return found == commands.end() ? nullptr : found;
}

}  // namespace dstrain::cmd
