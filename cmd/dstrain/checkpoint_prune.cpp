#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"

namespace dstrain::cmd {

int checkpoint_prune(std::span<const std::string> arguments) {
  const CheckpointRequest request = parse_checkpoint_request(arguments);
  if (!request.keep) fail(ErrorCode::usage, "checkpoint prune: needs --keep N");
  require_own_format(request.directory);
  const auto removed = checkpoint::prune(request.directory, *request.keep);
  if (request.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& path : removed) list.push_back(path.string());
    fmt::print("{}\n", nlohmann::ordered_json{{"removed", list}}.dump(2));
    return status::done;
  }
  for (const auto& path : removed) fmt::print("removed {}\n", path.string());
  if (removed.empty()) {
    fmt::print("nothing removed: there are no more than {} whose data are whole\n", *request.keep);
  }
  return status::done;
}

}  // namespace dstrain::cmd
