#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::checkpoint {

/// A directory OUTPUT_DIR/checkpoint-N that is there, whole or not.
struct Found {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// "checkpoint-12".
std::string directory_name(std::int64_t step);

/// 12 of "checkpoint-12"; nothing for any other name ("checkpoint-012").
std::optional<std::int64_t> step_of(std::string_view name);

bool has_manifest(const std::filesystem::path& directory);

/// Whether a path means a checkpoint, rather than a directory that holds some: by its name, or by
/// the manifest in it.
bool is_checkpoint(const std::filesystem::path& path);

/// All of them, the newest first. Temporary directories do not count. Throws Error{input} when
/// `output` is no directory.
std::vector<Found> list_checkpoints(const std::filesystem::path& output);

/// How far a checkpoint is looked into.
enum class Depth {
  names,    ///< the manifest, and which files are there in which sizes
  contents  ///< every byte
};

/// What verifying a checkpoint finds: by this alone it is listed, verified, pruned and resumed
/// from.
struct Verification {
  std::vector<std::string> damage;  ///< each file that is changed or missing, a line with the place
  std::vector<std::string> foreign;  ///< what lies there and is not the checkpoint's, see there
  std::string newer;  ///< which program wrote it, in a format that this one cannot read; else empty

  /// Its data are as they were written: what lies beside them makes them no worse.
  [[nodiscard]] bool intact() const { return damage.empty() && newer.empty(); }
  /// Intact, and there is nothing else.
  [[nodiscard]] bool whole() const { return intact() && foreign.empty(); }
  /// Why it is not intact, in a line.
  [[nodiscard]] const std::string& problem() const {
    return newer.empty() ? damage.front() : newer;
  }
};

/// `elsewhere`: files that need not be there.
Verification verify(const std::filesystem::path& directory,
                    Depth depth = Depth::contents,
                    std::span<const std::string> elsewhere = {});

/// "a, b, c and 4 more": foreign files for a message.
std::string listed(std::span<const std::string> foreign);

/// The checkpoint that a path is or lies in, the path itself being there or not; empty: none.
/// Throws Error{usage} for what is no path.
std::filesystem::path enclosing_checkpoint(const std::filesystem::path& path);

/// A checkpoint that is gone.
struct Pruned {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::vector<std::string> damage;  ///< why it did not count; empty: there were newer ones
};

/// Removes all but the `keep` newest that are intact, foreign files beside them or not; what is
/// damaged goes too once `keep` of them are there. Never removes the newest one (`keep` is at least
/// 1), nor what has no manifest: another program's, nor one in a newer format. A directory is
/// renamed before it is removed, or loses its manifest first, so that no half of one is taken for
/// whole. Reads all of those that it keeps, but for the steps
/// `known_whole`, which the caller has written or read itself. `guarded`: the name of one that
/// always stays, as one of the `keep`; but the newest other one stays, too. Throws Error{io}.
std::vector<Pruned> prune(const std::filesystem::path& output,
                          std::int64_t keep,
                          std::span<const std::int64_t> known_whole = {},
                          std::string_view guarded = {});

}  // namespace dstrain::checkpoint
