#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "cmd/dstrain/commands.h"
#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

constexpr std::string_view checkpoint_usage =
    "dstrain checkpoint list DIR [--json]\n"
    "    Lists the checkpoints of an output directory, newest first: step, size, ranks that wrote\n"
    "    it, and whether its manifest and the sizes of its files are complete. Does not read the\n"
    "    files. Names foreign files, which do not make a checkpoint damaged.\n"
    "dstrain checkpoint verify DIR [--json]\n"
    "    Reads every byte of the checkpoints in DIR, or of the checkpoint DIR, and names each\n"
    "    changed, missing or foreign file, and the damaged place. Foreign files alone fail it "
    "too.\n"
    "dstrain checkpoint prune DIR --keep N [--json]\n"
    "    Removes all but the N newest checkpoints with complete data; the best one, if the newest\n"
    "    names it, is one of the N. Never removes the newest, even with foreign files in it, nor\n"
    "    another program's files. Removes nothing if there are fewer than N.\n"
    "dstrain checkpoint export DIR OUT [--dtype fp32|bf16|fp16] [--max_shard_size SIZE]\n"
    "                                  [-t|--tag global_stepN]\n"
    "    Writes the model as the Hugging Face directory OUT, rounded to the nearest values of the\n"
    "    type; replaces a model that is there. DIR: one checkpoint, or a run's output directory.\n"
    "    From a run's directory, exports the checkpoint of the tag, else the best one if the run\n"
    "    was trained with --load_best_model_at_end, else the newest with complete data. If OUT\n"
    "    lies in a checkpoint, the model goes beside DIR instead, to checkpoint-N-fp32. A model\n"
    "    larger than SIZE (5GB, 500MB, 2GiB, or bytes) is split into shards with an index [5GB].\n"
    "dstrain zero_to_fp32 DIR OUT ...\n"
    "    Same as export, under DeepSpeed's name. OUT is a directory, whatever its name, and holds\n"
    "    safetensors, not a pickle: --safe_serialization is always on. No parameter is frozen, so\n"
    "    --exclude_frozen_parameters has no effect.\n"
    "Exit status 2 if a checkpoint is damaged or there is none.\n";

struct CheckpointAction {
  std::string_view name;
  int (*run)(std::span<const std::string> arguments);
};

constexpr std::array<CheckpointAction, 4> checkpoint_actions{{{"list", checkpoint_list},
                                                              {"verify", checkpoint_verify},
                                                              {"prune", checkpoint_prune},
                                                              {"export", checkpoint_export}}};

}  // namespace

int checkpoint_command(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h")
      return fmt::print("{}", checkpoint_usage), status::done;
  }
  const std::string wanted = arguments.empty() ? "" : arguments.front();
  const auto* const found = std::ranges::find(checkpoint_actions, wanted, &CheckpointAction::name);
  if (found != checkpoint_actions.end()) return found->run(arguments.subspan(1));
  std::vector<std::string_view> names;
  names.reserve(checkpoint_actions.size());
  for (const CheckpointAction& action : checkpoint_actions) names.push_back(action.name);
  const std::string likely = suggest(wanted, names);
  fail(ErrorCode::usage, "checkpoint {}: no such action; {}\n{}", wanted,
       likely.empty() ? fmt::format("use {}", fmt::join(names, ", "))
                      : fmt::format("did you mean {}?", likely),
       checkpoint_usage);
}

int zero_to_fp32_command(std::span<const std::string> arguments) {
  std::vector<std::string> same{"export"};
  same.insert(same.end(), arguments.begin(), arguments.end());
  return checkpoint_command(same);
}

}  // namespace dstrain::cmd
