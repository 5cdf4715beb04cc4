#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/preprocess/input_file.h"

namespace dstrain::preprocess {

/// The decompressed bytes of a file, from its beginning.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Fills `bytes` and returns their number, which is smaller at the end of the file. Throws
  /// Error{input} for a compressed file that is damaged or truncated, Error{io}.
  virtual std::size_t read(std::span<char> bytes) = 0;
  /// Skips `bytes` bytes, fast if the file is not compressed.
  virtual void skip(std::int64_t bytes) = 0;
  /// Returns how much of the file on disk has been read, in bytes.
  [[nodiscard]] virtual std::int64_t consumed() const = 0;
};

/// Opens a file. gzip uses zlib, also for several members one after another (RFC 1952); zstd uses
/// libzstd, also for several frames (RFC 8878). Both are in a plug-in. Throws Error{io}, and
/// Error{config} if the plug-in is missing.
std::unique_ptr<ByteSource> open_bytes(const InputFile& file);

/// The function of the plug-in libdstrain_decompress.so: returns the decompressed bytes of a
/// compressed file, for the caller to delete. Plug-in and program are built together.
using OpenCompressedBytes = ByteSource*(const InputFile* file);
inline constexpr const char* open_compressed_bytes_symbol = "dstrain_open_compressed_bytes_1";

}  // namespace dstrain::preprocess
