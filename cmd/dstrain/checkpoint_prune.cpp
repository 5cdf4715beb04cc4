#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/engine/run_model.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

/// The best checkpoint that the newest intact one names; empty if it names none. Throws
/// Error{newer_format} if only a newer dstrain can tell.
std::string best_of(const std::filesystem::path& directory) {
  try {
    const auto newest = engine::find_newest_checkpoint(directory, checkpoint::Depth::names);
    const bool says = newest && newest->state && newest->state->best;
    return says ? newest->state->best->directory : "";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::newer_format) throw;
    return {};
  }
}

/// How many checkpoints have complete data.
std::ptrdiff_t count_intact(const std::filesystem::path& directory) {
  return std::ranges::count_if(checkpoint::list_checkpoints(directory), [](const auto& found) {
    return checkpoint::verify(found.path).intact();
  });
}

}  // namespace

int checkpoint_prune(std::span<const std::string> arguments) {
  const CheckpointRequest request = parse_checkpoint_request(arguments);
  if (!request.keep) fail(ErrorCode::usage, "checkpoint prune: --keep N is missing");
  require_own_format(request.directory);
  const std::string best = best_of(request.directory);
  const auto removed = checkpoint::prune(request.directory, *request.keep, {}, best);
  if (request.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const checkpoint::Pruned& one : removed) list.push_back(one.path.string());
    const nlohmann::ordered_json removed_list{{"removed", list}};
    // Names of files may not be UTF-8.
    fmt::print("{}\n", removed_list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return status::done;
  }
  for (const checkpoint::Pruned& one : removed) {
    fmt::print("removed {}{}\n", one.path.string(),
               one.damage.empty() ? "" : ", which was damaged: " + one.damage.front());
  }
  if (!removed.empty()) return status::done;
  const std::ptrdiff_t intact = count_intact(request.directory);
  fmt::print("nothing removed; checkpoints with complete data: {}\n", intact);
  return intact > 0 ? status::done : exit_status(ErrorCode::input);
}

}  // namespace dstrain::cmd
