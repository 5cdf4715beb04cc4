#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/base/open_beneath.h"
#include "runtime/base/worker_env.h"
#include "runtime/checkpoint/manifest_file.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

Examined examine_one(const fs::path& path, checkpoint::Depth depth) {
  Examined one{path, checkpoint::step_of(path.filename().string()), {}, {}, {}};
  one.problems = checkpoint::verify(path, depth);
  try {
    const UniqueFd directory = open_directory(path);
    const checkpoint::Manifest manifest = checkpoint::read_manifest(directory.get(), path);
    one.step = manifest.step;
    one.world_size = manifest.world_size;
    Bytes bytes = 0;
    for (const checkpoint::FileRecord& file : manifest.files) bytes += file.bytes;
    one.bytes = bytes;
  } catch (const Error&) {  // is among the problems
  }
  return one;
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

CheckpointRequest parse_checkpoint_request(std::span<const std::string> arguments) {
  CheckpointRequest request;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--json") {
      request.json = true;
    } else if (argument == "--keep" || argument.starts_with("--keep=")) {
      const std::string count = argument != "--keep"       ? argument.substr(7)
                                : i + 1 < arguments.size() ? arguments[++i]
                                                           : "";
      const auto steps = checkpoint::step_of("checkpoint-" + count);
      if (steps.value_or(0) < 1) {
        fail(ErrorCode::usage, "--keep: expected a number of checkpoints, got \"{}\"", count);
      }
      request.keep = steps;
    } else if (request.directory.empty() && !argument.empty() && argument.front() != '-') {
      request.directory = argument;
    } else {
      fail(ErrorCode::usage, "checkpoint: {}: not expected here", argument);
    }
  }
  if (request.directory.empty()) fail(ErrorCode::usage, "checkpoint: needs a directory");
  return request;
}

std::vector<Examined> examine(const fs::path& directory, checkpoint::Depth depth) {
  const fs::path plain = directory.has_filename() ? directory : directory.parent_path();
  if (checkpoint::is_checkpoint(plain)) {
    if (!fs::is_directory(plain)) fail(ErrorCode::input, "{}: no such directory", plain.string());
    return {examine_one(plain, depth)};
  }
  std::vector<Examined> all;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(plain)) {
    all.push_back(examine_one(found.path, depth));
  }
  if (all.empty()) fail(ErrorCode::input, "{}: holds no checkpoint", plain.string());
  return all;
}

std::string to_json(std::span<const Examined> checkpoints, const char* sound) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Examined& one : checkpoints) {
    list.push_back({{"step", or_null(one.step)},
                    {"path", one.path.string()},
                    {"bytes", or_null(one.bytes)},
                    {"world_size", or_null(one.world_size)},
                    {"state", one.problems.empty() ? sound : "damaged"},
                    {"problems", one.problems}});
  }
  // Names of files may be no UTF-8.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_table(std::span<const Examined> checkpoints, const char* sound) {
  std::string text = fmt::format("{:>10}  {:>10}  {:>5}  {}\n", "step", "size", "ranks", "state");
  for (const Examined& one : checkpoints) {
    text += fmt::format("{:>10}  {:>10}  {:>5}  {}\n", one.step ? fmt::to_string(*one.step) : "?",
                        one.bytes ? format_bytes(*one.bytes) : "?",
                        one.world_size ? fmt::to_string(*one.world_size) : "?",
                        one.problems.empty() ? sound : "damaged: " + one.problems.front());
  }
  return text;
}

int status_of(std::span<const Examined> checkpoints) {
  const bool sound =
      std::ranges::all_of(checkpoints, [](const Examined& one) { return one.problems.empty(); });
  return sound ? status::done : exit_status(ErrorCode::input);
}

}  // namespace dstrain::cmd
