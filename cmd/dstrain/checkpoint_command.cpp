#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "cmd/dstrain/commands.h"
#include "runtime/base/error.h"
#include "runtime/config/suggest.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

constexpr std::string_view checkpoint_usage =
    "dstrain checkpoint list DIR [--json]\n"
    "    The checkpoints of an output directory, newest first: step, size, ranks that wrote it,\n"
    "    and whether its manifest is whole and every file there in its size. Reads no contents.\n"
    "    What lies there beside its own files is named: it makes the data no worse.\n"
    "dstrain checkpoint verify DIR [--json]\n"
    "    Reads every byte of the checkpoints in DIR, or of the one that DIR is, and names each\n"
    "    changed, missing or foreign file with the place. Foreign files alone fail it, too.\n"
    "dstrain checkpoint prune DIR --keep N [--json]\n"
    "    Removes all but the N newest whose data are whole; the best one, if the newest names\n"
    "    it, is one of them. Never the newest, whatever foreign files lie in it, nor what another\n"
    "    program left; and nothing while there are fewer than N.\n"
    "dstrain checkpoint export DIR OUT [--dtype fp32|bf16|fp16] [--max_shard_size SIZE]\n"
    "                                  [-t|--tag global_stepN]\n"
    "    Writes the model as the Hugging Face directory OUT, rounded to the nearest values of the\n"
    "    type; a model that is there is replaced. DIR: one checkpoint, or a run's output "
    "directory,\n"
    "    which stands for the run's model: the best checkpoint if the run was trained with\n"
    "    --load_best_model_at_end, else the newest whose data are whole; or for the checkpoint of\n"
    "    the tag. Where OUT lies in a checkpoint the model goes beside DIR instead, to\n"
    "    checkpoint-N-fp32. What takes more than\n"
    "    SIZE (5GB, 500MB, 2GiB, or bytes; 5GB unless given) gets shards of at most that and an\n"
    "    index.\n"
    "dstrain zero_to_fp32 DIR OUT ...\n"
    "    The same as export, with DeepSpeed's name. OUT is a directory, whatever it is called,\n"
    "    and what is in it safetensors, no pickle: --safe_serialization is always on. Nothing is\n"
    "    frozen, so that --exclude_frozen_parameters leaves nothing out.\n"
    "Exit status 2 when a checkpoint is damaged or there is none.\n";

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
  const std::string likely = config::suggest(wanted, names);
  fail(ErrorCode::usage, "checkpoint {}: no such action; {}\n{}", wanted,
       likely.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                      : fmt::format("did you mean {}?", likely),
       checkpoint_usage);
}

int zero_to_fp32_command(std::span<const std::string> arguments) {
  std::vector<std::string> same{"export"};
  same.insert(same.end(), arguments.begin(), arguments.end());
  return checkpoint_command(same);
}

}  // namespace dstrain::cmd
