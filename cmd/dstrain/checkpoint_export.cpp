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
#include "runtime/base/worker_env.h"
#include "runtime/checkpoint/export.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

struct ExportRequest {
  std::string source;
  std::string output;
  std::string dtype = "fp32";
  std::string max_shard_size = "5GB";
  std::string tag{};  ///< "global_step12"; empty: the newest
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
  if (size.value() == 0) fail(ErrorCode::usage, "--max_shard_size: a file must hold something");
  options.shard_bytes_max = size.value();
  return options;
}

/// The step that a DeepSpeed tag means.
std::int64_t step_of_tag(const std::string& tag) {
  constexpr std::string_view prefix = "global_step";
  const auto step = tag.starts_with(prefix)
                        ? checkpoint::step_of("checkpoint-" + tag.substr(prefix.size()))
                        : std::nullopt;
  if (!step) fail(ErrorCode::usage, "--tag {}: expected global_stepN", tag);
  return *step;
}

/// The checkpoint that DIR means; `source` is one, or holds some.
fs::path chosen(const fs::path& source, const std::string& tag) {
  require_own_format(source);
  const auto step = tag.empty() ? std::nullopt : std::optional(step_of_tag(tag));
  if (checkpoint::has_manifest(source)) {
    if (step && checkpoint::Checkpoint(source).manifest().step != *step) {
      fail(ErrorCode::input, "--tag {}: {} is of another step", tag, source.string());
    }
    return source;
  }
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(source)) {
    if (step && found.step != *step) continue;
    const checkpoint::Verification verification = checkpoint::verify(found.path);
    if (verification.intact()) return found.path;
    fmt::print(stderr, "warning: {} is passed over: {}\n", found.path.string(),
               verification.damage.front());
  }
  fail(ErrorCode::input, "{}: holds no checkpoint whose data are whole{}", source.string(),
       step ? fmt::format(" of step {}", *step) : "");
}

/// Where the model goes: OUT, or a directory beside `source` when OUT lies in a checkpoint, as a
/// file more would spoil that.
fs::path output_of(const ExportRequest& request, const fs::path& source) {
  if (request.output.empty()) fail(ErrorCode::usage, "OUT is empty: a directory is needed");
  fs::path wanted = request.output;
  if (!wanted.has_filename()) wanted = wanted.parent_path();  // "hf/"
  const fs::path around = checkpoint::enclosing_checkpoint(wanted);
  if (around.empty()) {
    if (!checkpoint::step_of(wanted.filename().string())) return request.output;
    fail(ErrorCode::usage, "{}: would be taken for a checkpoint; choose another name",
         request.output);
  }
  const fs::path own = checkpoint::enclosing_checkpoint(source);
  fs::path beside = fmt::format("{}-{}", own.string(), request.dtype);
  fmt::print(stderr,
             "warning: {} lies in the checkpoint {}, to which nothing may be added; the model goes "
             "to {}\n",
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
      "{}: {} parameters of {} in {}, {} file{}: a Hugging Face directory with safetensors, not a "
      "pickle\n",
      output.string(), exported.parameters, opened.path().string(), request.dtype, exported.files,
      exported.files == 1 ? "" : "s");
  return status::done;
}

}  // namespace dstrain::cmd
