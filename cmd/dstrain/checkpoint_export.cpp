#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/base/worker_env.h"
#include "runtime/checkpoint/export.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::string source;
  std::string output;
  std::string dtype = "fp32";
  std::string max_shard_size = "5GB";
};

Request parse(std::span<const std::string> arguments) {
  Request request;
  CLI::App app;
  app.add_option("DIR", request.source)->required();
  app.add_option("OUT", request.output)->required();
  app.add_option("--dtype", request.dtype)->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--max_shard_size", request.max_shard_size);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "checkpoint export: {}; see dstrain checkpoint --help", error.what());
  }
  return request;
}

model::HfExportOptions options_of(const Request& request) {
  model::HfExportOptions options;
  if (request.dtype == "bf16") options.dtype = DType::bf16;
  if (request.dtype == "fp16") options.dtype = DType::f16;
  const auto size = parse_bytes(request.max_shard_size);
  if (!size.ok()) fail(ErrorCode::usage, "--max_shard_size: {}", size.error());
  if (size.value() == 0) fail(ErrorCode::usage, "--max_shard_size: a file must hold something");
  options.shard_bytes_max = size.value();
  return options;
}

/// The checkpoint that DIR means.
fs::path chosen(const fs::path& source) {
  if (checkpoint::has_manifest(source)) return source;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(source)) {
    const std::vector<std::string> damage = checkpoint::verify(found.path);
    if (damage.empty()) return found.path;
    fmt::print(stderr, "warning: {} is passed over: {}\n", found.path.string(), damage.front());
  }
  fail(ErrorCode::input, "{}: holds no checkpoint that verifies", source.string());
}

/// An extra file in it would spoil the checkpoint.
void check_outside(const fs::path& output, const fs::path& checkpoint) {
  const fs::path inner = fs::weakly_canonical(output);
  const fs::path outer = fs::weakly_canonical(checkpoint);
  if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end()) {
    fail(ErrorCode::usage, "{} lies in the checkpoint {}; export to another directory",
         output.string(), checkpoint.string());
  }
}

}  // namespace

int checkpoint_export(std::span<const std::string> arguments) {
  const Request request = parse(arguments);
  const model::HfExportOptions options = options_of(request);
  const fs::path source = chosen(request.source);
  check_outside(request.output, source);
  const checkpoint::Checkpoint opened(source);
  const checkpoint::Exported exported =
      checkpoint::export_checkpoint(opened, request.output, options);
  fmt::print("{}: {} parameters of {} in {}, {} file{}\n", request.output, exported.parameters,
             source.string(), request.dtype, exported.files, exported.files == 1 ? "" : "s");
  return status::done;
}

}  // namespace dstrain::cmd
