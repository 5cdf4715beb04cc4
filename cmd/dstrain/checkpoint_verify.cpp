#include <fmt/core.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"

namespace dstrain::cmd {

int checkpoint_verify(std::span<const std::string> arguments) {
  const CheckpointRequest request = parse_checkpoint_request(arguments);
  if (request.keep) fail(ErrorCode::usage, "checkpoint verify: --keep goes with prune");
  constexpr const char* sound = "whole";
  const std::vector<Examined> all = examine(request.directory, checkpoint::Depth::contents);
  if (request.json) {
    fmt::print("{}\n", to_json(all, sound));
    return status_of(all);
  }
  fmt::print("{}", to_table(all, sound));
  for (const Examined& one : all) {
    for (std::size_t i = 1; i < one.problems.size(); ++i) fmt::print("{}\n", one.problems[i]);
  }
  return status_of(all);
}

}  // namespace dstrain::cmd
