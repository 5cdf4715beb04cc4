#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// Writes a file that was not there, from its first byte to its last, hashing on the way. Without
/// finish() it is gone at the end of the scope. Every failure throws Error{io}.
class NewFile {
 public:
  /// Creates `root` / `path` and takes the space for all of it.
  NewFile(const std::filesystem::path& root, const std::string& path, Bytes bytes);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  void append(std::span<const std::byte> bytes);
  /// Call once, last: flushes. The directory that holds the file is left to be flushed.
  FileRecord finish();

 private:
  void start_writeback();

  FileRecord record_;
  std::string name_;
  UniqueFd fd_;  ///< until finish()
  ChunkHasher hasher_;
  Bytes written_ = 0;
  Bytes submitted_ = 0;  ///< the disk has been given these
};

}  // namespace dstrain::checkpoint
