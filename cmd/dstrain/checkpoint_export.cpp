#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "launcher/plan/option_words.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/checkpoint/export.h"
#include "runtime/config/trainer_checkpoint.h"
#include "runtime/engine/run_model.h"
#include "runtime/os/file.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

struct ExportRequest {
  std::string source;
  std::string output;
  std::string dtype = "fp32";
  std::string max_shard_size = "5GB";
  std::string tag{};  ///< "global_step12"; empty: the run's model
};

ExportRequest parse_export_request(std::span<const std::string> arguments) {
  ExportRequest request;
  CLI::App app;
  app.add_option("DIR", request.source)->required();
  app.add_option("OUT", request.output)->required();
  app.add_option("--dtype", request.dtype)->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--max_shard_size", request.max_shard_size);
  app.add_option("-t,--tag", request.tag);
  app.add_flag("--safe_serialization,--exclude_frozen_parameters");
  launcher::parse_option_words(app, arguments, "checkpoint export");
  return request;
}

model::HfExportOptions options_of(const ExportRequest& request) {
  model::HfExportOptions options;
  if (request.dtype == "bf16") options.dtype = DType::bf16;
  if (request.dtype == "fp16") options.dtype = DType::f16;
  const auto size = parse_bytes(request.max_shard_size);
  if (!size.ok()) fail(ErrorCode::usage, "--max_shard_size: {}", size.error());
  if (size.value() == 0) fail(ErrorCode::usage, "--max_shard_size: must be more than 0");
  options.shard_bytes_max = size.value();
  return options;
}

/// The step of a DeepSpeed tag.
std::int64_t step_of_tag(const std::string& tag) {
  constexpr std::string_view prefix = "global_step";
  const auto step = tag.starts_with(prefix)
                        ? checkpoint::step_of("checkpoint-" + tag.substr(prefix.size()))
                        : std::nullopt;
  if (!step) fail(ErrorCode::usage, "--tag {}: expected global_stepN", tag);
  return *step;
}

/// A finished run may have kept no checkpoint, and another program's run has no dstrain checkpoint.
[[noreturn]] void refuse_without_checkpoint(const fs::path& source) {
  std::error_code ignored;
  const bool is_model = fs::exists(source / "model.safetensors", ignored) ||
                        fs::exists(source / "model.safetensors.index.json", ignored);
  const bool has_own = std::ranges::any_of(
      checkpoint::list_checkpoints(source),
      [](const checkpoint::Found& found) { return !config::is_trainer_checkpoint(found.path); });
  if (is_model && !has_own) {
    fail(ErrorCode::input,
         "{0}: is already a Hugging Face model directory and contains no dstrain checkpoint; use "
         "{0} itself",
         source.string());
  }
  fail(ErrorCode::input, "{}: contains no checkpoint with complete data", source.string());
}

/// The checkpoint in the run's directory `source` that is the run's model.
fs::path model_in(const fs::path& source) {
  const auto newest = engine::find_newest_checkpoint(source, checkpoint::Depth::contents);
  if (!newest) refuse_without_checkpoint(source);
  for (const std::string& damage : newest->damaged) fmt::print(stderr, "warning: {}\n", damage);
  fs::path model = engine::model_of_run(*newest);
  if (model == newest->path) return model;
  const checkpoint::Verification verification = checkpoint::verify(model);
  if (!verification.intact()) {
    fail(ErrorCode::input,
         "{}, the best checkpoint and the run's model (--load_best_model_at_end): {}; pass --tag "
         "global_stepN to export another checkpoint",
         model.string(), verification.problem());
  }
  fmt::print(stderr,
             "exporting the best checkpoint, {} (held-out loss {:.4f}), because the run was "
             "trained with --load_best_model_at_end; pass --tag global_stepN to export another\n",
             model.string(), newest->state->best->metric);
  return model;
}

/// The checkpoint to export from DIR; `source` is a checkpoint, or contains some.
fs::path chosen(const fs::path& source, const std::string& tag) {
  require_own_format(source);
  std::optional<std::int64_t> step;
  if (!tag.empty()) step = step_of_tag(tag);
  if (checkpoint::has_manifest(source)) {
    if (step && checkpoint::Checkpoint(source).manifest().step != *step) {
      fail(ErrorCode::input, "--tag {}: {} is a checkpoint of another step", tag, source.string());
    }
    return source;
  }
  if (!step) return model_in(source);
  fs::path path = source / checkpoint::directory_name(*step);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    fail(ErrorCode::input, "--tag {}: {} contains no {}", tag, source.string(),
         path.filename().string());
  }
  const checkpoint::Verification verification = checkpoint::verify(path);
  if (verification.intact()) return path;
  fail(ErrorCode::input, "--tag {}: {}", tag, verification.problem());
}

void require_directory_or_nothing(const fs::path& path) {
  const fs::path there = nearest_existing(path);
  std::error_code ignored;
  if (fs::is_directory(there, ignored)) return;
  fail(ErrorCode::usage, "{}: is a file; give a directory for the model", there.string());
}

/// Where the model goes: OUT, or a directory beside `source` if OUT lies in a checkpoint, which
/// another file would spoil.
fs::path output_of(const ExportRequest& request, const fs::path& source) {
  if (request.output.empty()) fail(ErrorCode::usage, "OUT is empty; give a directory");
  fs::path wanted = request.output;
  if (!wanted.has_filename()) wanted = wanted.parent_path();  // "hf/"
  require_directory_or_nothing(wanted);
  const fs::path around = checkpoint::enclosing_checkpoint(wanted);
  if (around.empty()) {
    if (!checkpoint::step_of(wanted.filename().string())) return request.output;
    fail(ErrorCode::usage, "{}: has the name of a checkpoint; choose another name", request.output);
  }
  const fs::path own = checkpoint::enclosing_checkpoint(source);
  fs::path beside = fmt::format("{}-{}", own.string(), request.dtype);
  fmt::print(stderr,
             "warning: {} lies in the checkpoint {}, which must not change; the model goes to {}\n",
             request.output, around.string(), beside.string());
  return beside;
}

}  // namespace

int checkpoint_export(std::span<const std::string> arguments) {
  const ExportRequest request = parse_export_request(arguments);
  const model::HfExportOptions options = options_of(request);
  const checkpoint::Checkpoint opened(chosen(request.source, request.tag));
  const fs::path output = output_of(request, opened.path());
  const checkpoint::Exported exported = checkpoint::export_checkpoint(opened, output, options);
  fmt::print(
      "{}: {} parameters of {} in {}, {}: a Hugging Face directory with safetensors, not a "
      "pickle\n",
      output.string(), exported.parameters, opened.path().string(), request.dtype,
      counted(static_cast<std::int64_t>(exported.files), "file"));
  return status::done;
}

}  // namespace dstrain::cmd
