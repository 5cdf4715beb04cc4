#include <algorithm>

#include <fmt/core.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {

int checkpoint_list(std::span<const std::string> arguments) {
  const CheckpointRequest request = parse_checkpoint_request(arguments);
  if (request.keep)
    fail(ErrorCode::usage,
         "checkpoint list: --keep is an option of checkpoint prune; leave it out");
  // Contents are not read, so the word is not "whole".
  constexpr const char* sound = "complete";
  const std::vector<Examined> all = examine(request.directory, checkpoint::Depth::names);
  fmt::print("{}", request.json ? to_json(all, sound) + "\n" : to_table(all, sound));
  const bool intact =
      std::ranges::all_of(all, [](const Examined& one) { return one.verification.intact(); });
  return intact ? status::done : exit_status(ErrorCode::input);
}

}  // namespace dstrain::cmd
