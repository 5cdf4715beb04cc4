#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/unique_fd.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

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
