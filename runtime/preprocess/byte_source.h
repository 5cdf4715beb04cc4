#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/preprocess/input_file.h"

namespace dstrain::preprocess {

/// The bytes of a file from its beginning, decompressed.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// Fills `bytes` and returns how many there were: less than asked for at the end of the file.
  /// Throws Error{input} for a compressed file that is damaged or cut short, Error{io}.
  virtual std::size_t read(std::span<char> bytes) = 0;
  /// Passes over `bytes` bytes, fast where the file is not compressed.
  virtual void skip(std::int64_t bytes) = 0;
  /// How much of the file on the disk has been read, in bytes.
  [[nodiscard]] virtual std::int64_t consumed() const = 0;
};

/// gzip by zlib, with several members one after another as well (RFC 1952); zstd by libzstd, with
/// several frames (RFC 8878), both in a plug-in. Throws Error{io}, and Error{config} where that
/// is missing.
std::unique_ptr<ByteSource> open_bytes(const InputFile& file);

/// What the plug-in libdstrain_decompress.so offers: the decompressed bytes of a file that is
/// compressed, for the caller to delete. It and the program are built together.
using OpenCompressedBytes = ByteSource*(const InputFile* file);
inline constexpr const char* open_compressed_bytes_symbol = "dstrain_open_compressed_bytes_1";

}  // namespace dstrain::preprocess
