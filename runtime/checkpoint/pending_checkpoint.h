#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// The directory of a checkpoint that is being written, under a name that nobody takes for one:
/// OUTPUT_DIR/checkpoint-12.tmp-HOST-BOOT-…, which tells whose it is (temporary_name.h). Made by
/// one rank per directory; the others write into path().
class PendingCheckpoint {
 public:
  /// Makes the directory and global_stepN in it. Throws Error{io}.
  PendingCheckpoint(const std::filesystem::path& output, std::int64_t step);
  PendingCheckpoint(const PendingCheckpoint&) = delete;
  PendingCheckpoint& operator=(const PendingCheckpoint&) = delete;
  PendingCheckpoint(PendingCheckpoint&&) = delete;
  PendingCheckpoint& operator=(PendingCheckpoint&&) = delete;
  /// Removes the directory unless it was committed.
  ~PendingCheckpoint();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Waits until this host sees the directory `path` that the rank of another one has made for this
  /// step. Returns whether it does after so many seconds.
  static bool await(const std::filesystem::path& path, std::int64_t step, double seconds);

  /// What commit() does with directories, without making a checkpoint. Throws Error{io}.
  void rehearse();

  /// Writes manifest.json, flushes every directory, gives the directory its name and flushes
  /// OUTPUT_DIR: after it returns, the checkpoint survives a power cut. A checkpoint of that step
  /// that was there (of an earlier run, or damaged) is moved aside first and removed after.
  /// One in a newer format is not. `elsewhere`: paths of files that lie in the directories of other
  /// nodes. `seconds`: how long files of other hosts are waited for. Throws Error{io}; then nothing
  /// old is lost, but where a file system renames no directory (overlayfs): there the old one of
  /// this step is removed before the new one gets its name.
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

/// The longest path that a save writes to, on a host whose name is as long as this one's.
std::filesystem::path longest_path(const std::filesystem::path& output,
                                   std::int64_t step,
                                   int world_size);

/// Removes what runs left that have ended without committing: directories named as above whose
/// process, on this host and boot or an earlier one, is gone. Those of other hosts are left alone.
/// Returns the names of what it removed.
std::vector<std::string> sweep_stale(const std::filesystem::path& output);

}  // namespace dstrain::checkpoint
