#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/dstrain/checkpoint_commands.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/manifest_text.h"
#include "runtime/config/trainer_checkpoint.h"
#include "runtime/model/other_formats.h"
#include "runtime/os/file.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

namespace fs = std::filesystem;

Examined examine_one(const fs::path& path, checkpoint::Depth depth) {
  Examined one{path, checkpoint::step_of(path.filename().string()), {}, {}, {}, {}};
  one.verification = checkpoint::verify(path, depth);
  one.another_program =
      !checkpoint::has_manifest(path) &&
      (config::is_trainer_checkpoint(path) || !model::explain_other_format(path).empty());
  try {
    const UniqueFd directory = open_directory(path);
    const checkpoint::Manifest manifest = checkpoint::read_manifest(directory.get(), path);
    one.step = manifest.step;
    one.world_size = manifest.world_size;
    Bytes bytes = 0;
    for (const checkpoint::FileRecord& file : manifest.files) bytes += file.bytes;
    one.bytes = bytes;
  } catch (const Error&) {  // it is among the problems
  }
  return one;
}

const char* word_of(const Examined& one, const char* sound) {
  if (one.another_program) return "another program's";
  if (!one.verification.newer.empty()) return "newer format";
  if (!one.verification.intact()) return "damaged";
  return one.verification.whole() ? sound : "foreign files";
}

std::string state_of(const Examined& one, const char* sound) {
  const checkpoint::Verification& verification = one.verification;
  if (one.another_program) return "another program's checkpoint";
  if (!verification.newer.empty()) return "newer format: " + verification.newer;
  if (!verification.intact()) return "damaged: " + verification.damage.front();
  if (verification.whole()) return sound;
  return fmt::format("{}, with foreign files: {}", sound, checkpoint::listed(verification.foreign));
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
      fail(ErrorCode::usage,
           "checkpoint: \"{}\" does not belong here; see dstrain checkpoint --help", argument);
    }
  }
  if (request.directory.empty()) fail(ErrorCode::usage, "checkpoint: DIR is missing");
  return request;
}

void require_own_format(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    fail(ErrorCode::input, "{}: no such directory", directory.string());
  }
  if (checkpoint::has_manifest(directory)) return;
  if (!checkpoint::list_checkpoints(directory).empty()) return;
  const std::string other =
      model::explain_other_format(directory, "dstrain train --model_name_or_path");
  if (!other.empty()) fail(ErrorCode::input, "{}", other);
}

std::vector<Examined> examine(const fs::path& directory, checkpoint::Depth depth) {
  const fs::path plain = directory.has_filename() ? directory : directory.parent_path();
  require_own_format(plain);
  if (checkpoint::is_checkpoint(plain)) return {examine_one(plain, depth)};
  std::vector<Examined> all;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(plain)) {
    all.push_back(examine_one(found.path, depth));
  }
  if (all.empty()) fail(ErrorCode::input, "{}: contains no checkpoint", plain.string());
  return all;
}

std::string to_json(std::span<const Examined> checkpoints, const char* sound) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Examined& one : checkpoints) {
    list.push_back({{"step", or_null(one.step)},
                    {"path", one.path.string()},
                    {"bytes", or_null(one.bytes)},
                    {"world_size", or_null(one.world_size)},
                    {"state", word_of(one, sound)},
                    {"problems", problems_of(one)},
                    {"foreign_files", one.verification.foreign}});
  }
  // Names of files may be no UTF-8.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_table(std::span<const Examined> checkpoints, const char* sound) {
  std::string text = fmt::format("{:>10}  {:>10}  {:>5}  {}\n", "step", "size", "ranks", "state");
  for (const Examined& one : checkpoints) {
    text +=
        fmt::format("{:>10}  {:>10}  {:>5}  {}\n", one.step ? fmt::to_string(*one.step) : "?",
                    one.bytes ? format_bytes(*one.bytes) : "?",
                    one.world_size ? fmt::to_string(*one.world_size) : "?", state_of(one, sound));
  }
  return text;
}

std::vector<std::string> problems_of(const Examined& one) {
  if (one.another_program) return {one.path.string() + ": another program's checkpoint"};
  std::vector<std::string> problems = one.verification.damage;
  if (!one.verification.newer.empty()) problems.push_back(one.verification.newer);
  for (const std::string& file : one.verification.foreign) {
    problems.push_back(fmt::format("{}: not in the manifest", (one.path / file).string()));
  }
  return problems;
}

}  // namespace dstrain::cmd
