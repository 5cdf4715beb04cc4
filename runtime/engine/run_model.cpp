#include "runtime/engine/run_model.h"

#include <algorithm>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"

namespace dstrain::engine {
namespace {

std::optional<TrainerState> read_state(const std::filesystem::path& path) {
  const checkpoint::Checkpoint checkpoint(path);
  const auto& files = checkpoint.manifest().files;
  if (std::ranges::find(files, std::string_view(trainer_state_file),
                        &checkpoint::FileRecord::path) == files.end()) {
    return std::nullopt;
  }
  return read_trainer_state(checkpoint);
}

}  // namespace

std::optional<NewestCheckpoint> find_newest_checkpoint(const std::filesystem::path& output,
                                                       checkpoint::Depth depth) {
  std::vector<std::string> damaged;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(output)) {
    const checkpoint::Verification verification = checkpoint::verify(found.path, depth);
    if (verification.intact()) {
      return NewestCheckpoint{found.path, read_state(found.path), std::move(damaged)};
    }
    if (!verification.newer.empty()) fail(ErrorCode::newer_format, "{}", verification.newer);
    damaged.push_back(found.path.string() + " is passed over: " + verification.damage.front());
  }
  return std::nullopt;
}

std::filesystem::path model_of_run(const NewestCheckpoint& newest) {
  if (!newest.state || !newest.state->loads_best || !newest.state->best) return newest.path;
  return newest.path.parent_path() / newest.state->best->directory;
}

}  // namespace dstrain::engine
