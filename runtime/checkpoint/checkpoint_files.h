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

/// The last few chunks of which only a part was wanted: the end of one tensor lies in the chunk
/// that the next one begins in. At most 16 MiB. Safe from several threads.
class ChunkCache {
 public:
  using Chunk = std::shared_ptr<const std::vector<std::byte>>;
  /// A file's number and a chunk's.
  using Key = std::pair<std::size_t, std::size_t>;

  /// The chunk, of `size` bytes; `load` fills it when it is not here.
  Chunk get(Key key, std::size_t size, FunctionRef<void(std::span<std::byte>)> load);

 private:
  std::mutex mutex_;
  std::list<std::pair<Key, Chunk>> chunks_;  ///< the last used first
};

/// The files of one checkpoint by their names, and any range of their bytes, checked. Stays with
/// its directory when that is renamed. Safe from several threads.
class CheckpointFiles {
 public:
  /// Reads and checks the manifest. Throws as read_manifest().
  explicit CheckpointFiles(std::filesystem::path directory);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// How messages name a file.
  [[nodiscard]] std::string name_of(const std::string& file) const;
  /// Throws Error{input} when the manifest does not list it.
  [[nodiscard]] const FileRecord& record(const std::string& file) const;
  /// `file` is one of the manifest's. Throws Error{input} when it is not there in its size.
  [[nodiscard]] CheckedFile open(const FileRecord& file) const;
  /// Bytes from `begin` on, from no more than the chunks that hold them. Throws Error{input}.
  void read(const FileRecord& file, std::uint64_t begin, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  UniqueFd root_;
  Manifest manifest_;
  mutable ChunkCache cache_;
};

}  // namespace dstrain::checkpoint
