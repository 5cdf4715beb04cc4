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

/// Offsets, sizes and addresses of all I/O are multiples of this. A file keeps a checksum of 8
/// bytes in memory for each piece of this size.
inline constexpr Bytes io_alignment = 4096;

/// Bytes [begin, end) of a file.
struct FileRange {
  Bytes begin = 0;
  Bytes end = 0;
  friend constexpr bool operator==(const FileRange&, const FileRange&) = default;
};

/// A file in `directory` that has no name: nothing is left of it however the process ends, and no
/// other finds it. All its space is taken; it reads as zeros. Throws Error{io} that names the
/// directory when it is missing, cannot be written to, or has too little room; with both sizes in
/// the last case.
UniqueFd make_nameless_file(const std::filesystem::path& directory, Bytes bytes);

/// Space on a disk for what a rank has no memory for. The file has no name: nothing is left of it
/// however the process ends, and no other finds it. Reads as zeros where nothing was written.
/// Movable; threads may note and verify different ranges at once.
class SwapFile {
 public:
  /// Takes all the space now; see make_nameless_file() for what may be wrong.
  SwapFile(const std::filesystem::path& directory, Bytes bytes);

  /// For messages: "swap file in DIRECTORY".
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Whether I/O goes past the page cache; some file systems cannot.
  [[nodiscard]] bool direct() const noexcept { return direct_; }

  /// Keeps the checksums of what is about to be written. Both take whole pieces.
  void note(Bytes offset, std::span<const std::byte> written) noexcept;
  /// The first run of pieces that were read and are not what was written last.
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
