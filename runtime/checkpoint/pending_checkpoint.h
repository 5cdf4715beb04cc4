#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// The directory of a checkpoint that is being written, under a name that does not look like a
/// checkpoint: OUTPUT_DIR/checkpoint-12.tmp-HOST-BOOT-…, which identifies its owner
/// (temporary_name.h). One rank makes it; the others of that directory write into path().
class PendingCheckpoint {
 public:
  /// Makes the directory, with global_stepN in it. Throws Error{io}.
  PendingCheckpoint(const std::filesystem::path& output, std::int64_t step);
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;
  PendingCheckpoint(PendingCheckpoint&&) = delete;
  PendingCheckpoint& operator=(PendingCheckpoint&&) = delete;
  /// Removes the directory unless it was committed.
  ~PendingCheckpoint();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Waits until this host sees the directory `path` that a rank of another host has made for this
  /// step. Returns whether it does after `seconds`.
  static bool await(const std::filesystem::path& path, std::int64_t step, double seconds);

  /// Makes the directory calls of commit() without making a checkpoint. Throws Error{io}.
  void rehearse();

  /// Writes manifest.json, flushes every directory, gives the directory its name and flushes
  /// OUTPUT_DIR: after it returns, the checkpoint survives a power cut. An existing checkpoint of
  /// that step (of an earlier run, or damaged) is first moved aside and then removed, unless it has
  /// a newer format. `elsewhere`: paths of files in the directories of other nodes. `seconds`: how
  /// long to wait for files of other hosts. Throws Error{io}; no old data is lost then, except on a
  /// file system that cannot rename directories (overlayfs): there the old checkpoint of this step
  /// is removed before the new one gets its name.
  void commit(const Manifest& manifest,
              std::span<const std::string> elsewhere = {},
              double seconds = 0);

 private:
  [[nodiscard]] std::filesystem::path replace(const std::filesystem::path& target) const;

  std::filesystem::path output_;
  std::filesystem::path path_;
  std::int64_t step_;
  bool committed_ = false;
};

/// Returns the longest path that a save writes to, on a host whose name is as long as this one's.
std::filesystem::path longest_path(const std::filesystem::path& output,
                                   std::int64_t step,
                                   int world_size);

/// Removes the temporary directories of runs that have ended without committing: those named as
/// above whose process, on this host and boot or an earlier one, is gone. Those of other hosts
/// stay. Returns the names of the removed directories.
std::vector<std::string> sweep_stale(const std::filesystem::path& output);

}  // namespace dstrain::checkpoint
