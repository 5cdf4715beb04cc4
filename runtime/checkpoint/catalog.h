#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::checkpoint {

/// An existing directory OUTPUT_DIR/checkpoint-N, whole or not.
struct Found {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// Returns "checkpoint-12".
std::string directory_name(std::int64_t step);

/// Returns 12 for "checkpoint-12"; nothing for any other name ("checkpoint-012").
std::optional<std::int64_t> step_of(std::string_view name);

bool has_manifest(const std::filesystem::path& directory);

/// Whether a path is a checkpoint, rather than a directory that holds some: by its name, or by the
/// manifest in it.
bool is_checkpoint(const std::filesystem::path& path);

/// Returns all checkpoints of `output`, the newest first. Temporary directories do not count.
/// Throws Error{input} if `output` is not a directory.
std::vector<Found> list_checkpoints(const std::filesystem::path& output);

/// How deep a checkpoint is verified.
enum class Depth {
  names,    ///< the manifest, and the names and sizes of the files
  contents  ///< every byte
};

/// The result of verifying a checkpoint. Listing, verifying, pruning and resuming depend on this
/// alone.
struct Verification {
  std::vector<std::string> damage;   ///< one line per changed or missing file, with the place
  std::vector<std::string> foreign;  ///< files in the directory that are not part of the checkpoint
  std::string newer;  ///< the writer of a format that this program cannot read; else empty

  /// Whether the data are as they were written. Foreign files do not matter.
  [[nodiscard]] bool intact() const { return damage.empty() && newer.empty(); }
  /// Whether it is intact and there are no other files.
  [[nodiscard]] bool whole() const { return intact() && foreign.empty(); }
  /// Returns in one line why it is not intact.
  [[nodiscard]] const std::string& problem() const {
    return newer.empty() ? damage.front() : newer;
  }
};

/// `elsewhere`: files that need not be in the directory.
Verification verify(const std::filesystem::path& directory,
                    Depth depth = Depth::contents,
                    std::span<const std::string> elsewhere = {});

/// Returns "a, b, c and 4 more": foreign files for a message.
std::string listed(std::span<const std::string> foreign);

/// Returns the checkpoint that a path is or is inside of, whether the path exists or not; empty if
/// there is none. Throws Error{usage} if `path` is not a valid path.
std::filesystem::path enclosing_checkpoint(const std::filesystem::path& path);

/// A checkpoint that was removed.
struct Pruned {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::vector<std::string> damage;  ///< why it did not count; empty: there were enough newer ones
};

/// Removes all but the `keep` newest intact checkpoints, which may have foreign files beside them;
/// damaged ones are removed too once there are `keep` intact ones. Never removes the newest one
/// (`keep` is at least 1), nor directories without a manifest, which are another program's, nor
/// checkpoints in a newer format. A directory is renamed before it is removed, or loses its
/// manifest first, so that a partly removed one is never taken for a whole one. Reads all
/// checkpoints that it keeps, except those of the steps `known_whole`, which the caller has written
/// or read itself. `guarded`: the name of one that is always kept, as one of the `keep`; the newest
/// other one is kept too. Throws Error{io}.
std::vector<Pruned> prune(const std::filesystem::path& output,
                          std::int64_t keep,
                          std::span<const std::int64_t> known_whole = {},
                          std::string_view guarded = {});

}  // namespace dstrain::checkpoint
