#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/base/unique_fd.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// Opens a checkpoint's directory for open_beneath. Throws Error{input}.
UniqueFd open_directory(const std::filesystem::path& path);

/// Opens `path` for reading without following a symbolic link on the way, so that nothing outside
/// the directory is reached. `name` is for messages. Throws Error{input}.
UniqueFd open_beneath(int directory, const std::string& path, const std::string& name);

/// Reads and checks the manifest of the checkpoint `path`, opened as `directory`. Throws
/// Error{input}.
Manifest read_manifest(int directory, const std::filesystem::path& path);

/// A file of a checkpoint whose every byte is checked before it is used. Damage throws
/// Error{input} that names the place. Safe from several threads.
class CheckedFile {
 public:
  /// Checks that a regular file of the right size is there. Keeps a reference to `record`.
  CheckedFile(int directory, const FileRecord& record, std::string name);

  /// The bytes of whole chunks from number `first` on; `bytes` ends where a chunk ends.
  void read(std::size_t first, std::span<std::byte> bytes) const;
  void verify() const;

 private:
  const FileRecord& record_;
  std::string name_;
  UniqueFd fd_;
};

}  // namespace dstrain::checkpoint
