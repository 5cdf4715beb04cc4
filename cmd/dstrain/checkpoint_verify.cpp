#include <algorithm>

#include <fmt/core.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {

int checkpoint_verify(std::span<const std::string> arguments) {
  const CheckpointRequest request = parse_checkpoint_request(arguments);
  if (request.keep)
    fail(ErrorCode::usage,
         "checkpoint verify: --keep is an option of checkpoint prune; leave it out");
  constexpr const char* sound = "whole";
  const std::vector<Examined> all = examine(request.directory, checkpoint::Depth::contents);
  fmt::print("{}", request.json ? to_json(all, sound) + "\n" : to_table(all, sound));
  for (const Examined& one : all) {
    if (request.json) break;
    const std::vector<std::string> problems = problems_of(one);
    // The table shows the first damage.
    const std::size_t told = one.verification.intact() ? 0 : 1;
    for (std::size_t i = told; i < problems.size(); ++i) fmt::print("{}\n", problems[i]);
  }
  const bool whole =
      std::ranges::all_of(all, [](const Examined& one) { return one.verification.whole(); });
  return whole ? status::done : exit_status(ErrorCode::input);
}

}  // namespace dstrain::cmd
