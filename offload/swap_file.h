#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/checksum.h"
#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain::offload {

/// All I/O uses multiples of this as offsets, sizes and addresses. A file keeps an 8-byte checksum
/// in memory for each piece of this size.
inline constexpr Bytes io_alignment = 4096;

/// Bytes [begin, end) of a file.
struct FileRange {
  Bytes begin = 0;
  Bytes end = 0;
  friend constexpr bool operator==(const FileRange&, const FileRange&) = default;
};

/// Creates an unnamed file in `directory`: it vanishes with the process, however that ends, and no
/// other process can find it. Allocates all its space; it reads as zeros. Throws Error{io} that
/// names the directory if it is missing, not writable, or has too little room (then with both
/// sizes).
UniqueFd make_nameless_file(const std::filesystem::path& directory, Bytes bytes);

/// Disk space for what a rank has no memory for, in an unnamed file (make_nameless_file()). Reads
/// as zeros where nothing was written. Movable; threads may note and verify different ranges
/// concurrently.
class SwapFile {
 public:
  /// Allocates all the space. Throws as make_nameless_file().
  SwapFile(const std::filesystem::path& directory, Bytes bytes);

  /// For messages: "swap file in DIRECTORY".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Whether I/O bypasses the page cache; some file systems do not support that.
  [[nodiscard]] bool direct() const noexcept { return direct_; }

  /// Stores the checksums of data before it is written. This and damage() take whole pieces.
  void note(Bytes offset, std::span<const std::byte> written) noexcept;
  /// Returns the first run of pieces that differ from what was written last.
  [[nodiscard]] std::optional<FileRange> damage(Bytes offset,
                                                std::span<const std::byte> read) const noexcept;

 private:
  std::string name_;
  Bytes bytes_ = 0;
  UniqueFd fd_;
  bool direct_ = false;
  std::vector<Checksum> checksums_;
};

}  // namespace dstrain::offload
