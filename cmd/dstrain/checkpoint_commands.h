#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/checkpoint/catalog.h"

namespace dstrain::cmd {

/// `dstrain checkpoint ACTION ...`, each without its own name. They return an exit status and throw
/// Error.
int checkpoint_list(std::span<const std::string> arguments);
int checkpoint_verify(std::span<const std::string> arguments);
int checkpoint_prune(std::span<const std::string> arguments);
int checkpoint_export(std::span<const std::string> arguments);

/// The arguments of list, verify and prune.
struct CheckpointRequest {
  std::filesystem::path directory;
  bool json = false;
  std::optional<std::int64_t> keep;
};

/// Reads DIR [--json] [--keep N]. Throws Error{usage}.
CheckpointRequest parse_checkpoint_request(std::span<const std::string> arguments);

/// What is known about a checkpoint.
struct Examined {
  std::filesystem::path path;
  std::optional<std::int64_t> step;  ///< from its name, else its manifest
  std::optional<Bytes> bytes;        ///< of all files; unknown when the manifest cannot be read
  std::optional<int> world_size;
  checkpoint::Verification verification;
  bool another_program = false;  ///< wrote it
};

/// Throws Error{input} for a directory that is missing, or another program's checkpoint or model.
void require_own_format(const std::filesystem::path& directory);

/// Examines `directory` if it is a checkpoint, else all checkpoints in it, newest first. Throws
/// Error{input} if there is none.
std::vector<Examined> examine(const std::filesystem::path& directory, checkpoint::Depth depth);

/// `sound`: the word for an intact checkpoint at the depth that was examined.
std::string to_json(std::span<const Examined> checkpoints, const char* sound);

/// A line for each, under a heading.
std::string to_table(std::span<const Examined> checkpoints, const char* sound);

/// A line with the path of each changed, missing or foreign file.
std::vector<std::string> problems_of(const Examined& one);

}  // namespace dstrain::cmd
