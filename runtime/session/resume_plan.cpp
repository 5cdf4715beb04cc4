#include "runtime/session/resume_plan.h"

#include <system_error>

#include <climits>

#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/config/trainer_checkpoint.h"
#include "runtime/model/other_formats.h"
#include "runtime/session/model_loading.h"

namespace dstrain::session {
namespace {

namespace fs = std::filesystem;

std::vector<checkpoint::Found> list(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) return {};
  return checkpoint::list_checkpoints(directory);
}

/// What is asked for may be another program's, or be nowhere.
void refuse_other_format(const config::TrainSettings& settings) {
  const std::string& from = settings.checkpoint.resume_from;
  if (from.empty()) return;
  const fs::path directory = from == "latest" ? settings.output.directory : from;
  std::error_code ignored;
  if (from != "latest" && !fs::is_directory(directory, ignored)) {
    fail(ErrorCode::input, "--resume_from_checkpoint {}: no such directory", from);
  }
  if (holds_token_shards(directory)) {
    fail(ErrorCode::input,
         "--resume_from_checkpoint {}: holds the token shards of dstrain tokenize, not a "
         "checkpoint",
         from);
  }
  if (checkpoint::has_manifest(directory) || !list(directory).empty()) return;
  const std::string other = model::explain_other_format(directory);
  if (!other.empty()) fail(ErrorCode::input, "--resume_from_checkpoint {}", other);
}

/// Checkpoints in the output directory that this run does not go on from, or that are later than
/// the one that it does, would be taken for its own.
void check_output(const RunSetup& setup, const engine::ResumePlan& plan, std::int64_t step) {
  const fs::path output = setup.settings.output.directory;
  std::error_code ignored;
  const bool own = fs::equivalent(plan.directory, output, ignored);
  if (own && plan.fall_back) return;
  for (const checkpoint::Found& found : list(output)) {
    if (own && found.step <= step) continue;
    const std::string name = found.path.filename().string();
    if (config::is_trainer_checkpoint(found.path)) {
      fail(ErrorCode::usage,
           "--output_dir {}: holds {}, a checkpoint of Hugging Face's Trainer or DeepSpeed, which "
           "cannot be resumed; move it away, or choose another directory",
           output.string(), name);
    }
    fail(ErrorCode::usage,
         "--output_dir {}: holds {}, which would be taken for a checkpoint of this run; move it "
         "away, choose another directory, or go on from it with --resume_from_checkpoint latest",
         output.string(), name);
  }
}

}  // namespace

void refuse_unfit_output(const config::TrainSettings& settings, int world_size) {
  const std::string& output = settings.output.directory;
  const std::size_t length =
      checkpoint::longest_path(output, settings.steps, world_size).native().size();
  if (settings.trains && length >= PATH_MAX) {
    fail(ErrorCode::usage,
         "--output_dir: its {} characters are {} too many for the paths of checkpoints, which the "
         "system takes up to {}; choose a shorter one",
         output.size(), length - PATH_MAX + 1, PATH_MAX - 1);
  }
  const fs::path around = checkpoint::enclosing_checkpoint(output);
  if (around.empty()) return;
  if (holds_token_shards(around)) {
    fail(ErrorCode::usage,
         "--output_dir {}: {} holds the token shards of dstrain tokenize; choose another directory",
         output, around.string());
  }
  fail(ErrorCode::usage, "--output_dir {}: {} is a checkpoint; choose another directory", output,
       around.string());
}

engine::ResumePlan plan_resume(const config::TrainSettings& settings, int rank) {
  const std::string& from = settings.checkpoint.resume_from;
  if (from.empty()) return {};
  using Files = checkpoint::Checkpoint::Files;
  const Files files = settings.checkpoint.node_local ? Files::own : Files::all;
  const engine::OtherData other_data =
      settings.checkpoint.ignore_data_skip ? engine::OtherData::taken : engine::OtherData::refused;
  if (rank != 0 && files == Files::all) {
    return {.directory = {}, .files = files, .other_data = other_data};
  }
  fs::path directory = from == "latest" ? settings.output.directory : from;
  if (!directory.has_filename()) directory = directory.parent_path();  // "checkpoint-3/"
  if (from != "latest" && checkpoint::is_checkpoint(directory)) {
    return {directory.parent_path(), {directory.filename().string()}, false, files, other_data};
  }
  engine::ResumePlan plan{directory, {}, true, files, other_data};
  for (const checkpoint::Found& found : list(directory)) {
    plan.names.push_back(found.path.filename().string());
  }
  if (plan.names.empty()) {
    fail(ErrorCode::input,
         "--resume_from_checkpoint {}: there is no checkpoint-N in {}; leave the option out to "
         "start anew",
         from, directory.string());
  }
  return plan;
}

void check_resume(const RunSetup& setup) {
  refuse_other_format(setup.settings);
  const engine::ResumePlan plan = plan_resume(setup.settings);
  if (plan.names.empty()) return check_output(setup, plan, 0);
  std::string found;
  for (const std::string& name : plan.names) {
    const fs::path path = plan.directory / name;
    try {
      const checkpoint::Checkpoint checkpoint(path, plan.files);
      engine::read_run(checkpoint, setup.state, setup.model, plan.other_data);
      return check_output(setup, plan, checkpoint.manifest().step);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::input) throw;
      const std::string other =
          checkpoint::has_manifest(path) ? "" : model::explain_other_format(path);
      found += fmt::format("\n  {}", other.empty() ? error.what() : other);
    }
  }
  fail(ErrorCode::input, "--resume_from_checkpoint {}: there is no whole checkpoint:{}",
       setup.settings.checkpoint.resume_from, found);
}

}  // namespace dstrain::session
