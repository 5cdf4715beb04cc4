#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/unique_handle.h"
#include "runtime/checkpoint/checked_file.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// A cache of the last chunks of which only a part was read, because one tensor ends in the chunk
/// that the next one begins in. At most 16 MiB. Thread-safe.
class ChunkCache {
 public:
  using Chunk = std::shared_ptr<const std::vector<std::byte>>;
  /// The number of a file and of a chunk.
  using Key = std::pair<std::size_t, std::size_t>;

  /// Returns the chunk, of `size` bytes; `load` fills it if it is not cached.
  Chunk get(Key key, std::size_t size, FunctionRef<void(std::span<std::byte>)> load);

 private:
  std::mutex mutex_;
  std::list<std::pair<Key, Chunk>> chunks_;  ///< most recently used first
};

/// The files of one checkpoint by name, and any range of their bytes, checked. Follows its
/// directory if that is renamed. Thread-safe.
class CheckpointFiles {
 public:
  /// Reads and checks the manifest. Throws as read_manifest().
  explicit CheckpointFiles(std::filesystem::path directory);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// Returns the name of a file for messages.
  [[nodiscard]] std::string name_of(const std::string& file) const;
  /// Throws Error{input} if the manifest does not list the file.
  [[nodiscard]] const FileRecord& record(const std::string& file) const;
  /// Opens a file of the manifest. Throws Error{input} if it is missing or has another size.
  [[nodiscard]] CheckedFile open(const FileRecord& file) const;
  /// Reads bytes from `begin` on, from only the chunks that hold them. Throws Error{input}.
  void read(const FileRecord& file, std::uint64_t begin, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  UniqueFd root_;
  Manifest manifest_;
  mutable ChunkCache cache_;
};

}  // namespace dstrain::checkpoint
