#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// A file of a checkpoint whose every byte is checked before it is used. Damage throws
/// Error{input} that names the first place. Safe from several threads. Large ranges are read by a
/// few threads, past the page cache where it does not hold them: one thread that also hashes and
/// copies keeps no fast disk busy.
class CheckedFile {
 public:
  /// Checks that a regular file of the right size is there. Keeps a reference to `record`.
  CheckedFile(int directory, const FileRecord& record, std::string name);

  /// The bytes of whole chunks from number `first` on; `bytes` ends where a chunk ends.
  void read(std::size_t first, std::span<std::byte> bytes) const;
  void verify() const;

 private:
  /// Whole chunks, and where they go; nowhere when `target` is null.
  struct Range {
    std::size_t begin;
    std::size_t end;
    std::byte* target;
    bool large;  ///< worth threads, and keeping it out of the page cache
  };
  void scan(const Range& range) const;
  void scan_piece(const Range& range, std::size_t offset, std::span<std::byte> buffer) const;
  [[nodiscard]] bool is_cached(std::size_t offset) const;
  [[nodiscard]] bool read_direct(std::size_t offset, std::size_t size, std::byte* aligned) const;
  void read_cached(std::size_t offset, std::span<std::byte> bytes) const;
  void check(std::size_t offset, std::span<const std::byte> bytes) const;

  const FileRecord& record_;
  std::string name_;
  UniqueFd fd_;
  UniqueFd direct_fd_;  ///< past the page cache; null where the file system cannot
};

}  // namespace dstrain::checkpoint
