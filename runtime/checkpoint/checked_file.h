#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// A file of a checkpoint. Every byte is checked before it is used. Damage throws Error{input} that
/// names the first place. Thread-safe. A few threads read large ranges, bypassing the page cache
/// unless it holds them: one thread that also hashes and copies cannot keep a fast disk busy.
class CheckedFile {
 public:
  /// Checks that there is a regular file of the right size. Keeps a reference to `record`.
  CheckedFile(int directory, const FileRecord& record, std::string name);

  /// Reads whole chunks from number `first` on; `bytes` ends at the end of a chunk.
  void read(std::size_t first, std::span<std::byte> bytes) const;
  void verify() const;

 private:
  /// Whole chunks, and the memory that they are read to; none if `target` is null.
  struct Range {
    std::size_t begin;
    std::size_t end;
    std::byte* target;
    bool large;  ///< large enough for threads, and for bypassing the page cache
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
  UniqueFd direct_fd_;  ///< bypasses the page cache; null if the file system cannot
};

}  // namespace dstrain::checkpoint
