#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/checksum.h"
#include "runtime/base/units.h"

namespace dstrain::checkpoint {

/// Files are checked in chunks of this size; the last one may be shorter.
inline constexpr Bytes chunk_bytes = mebibyte;
inline constexpr auto chunk_size = static_cast<std::size_t>(chunk_bytes);

using dstrain::Checksum;
using dstrain::checksum_of;

/// Returns sixteen lower-case hexadecimal digits.
std::string to_text(Checksum checksum);

/// Computes the checksums of a file's chunks from its bytes in order, cut in any way.
class ChunkHasher {
 public:
  ChunkHasher();
  ChunkHasher(ChunkHasher&&) noexcept;
  ChunkHasher& operator=(ChunkHasher&&) noexcept;
  ChunkHasher(const ChunkHasher&) = delete;
  ChunkHasher& operator=(const ChunkHasher&) = delete;
  ~ChunkHasher();
  void add(std::span<const std::byte> bytes);
  /// Call once, last. An empty file has no chunks.
  std::vector<Checksum> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dstrain::checkpoint
