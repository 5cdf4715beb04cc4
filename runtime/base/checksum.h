#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace dstrain {

/// XXH3, 64 bits, seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). Detects accidental
/// changes, not deliberate ones.
using Checksum = std::uint64_t;

Checksum checksum_of(std::span<const std::byte> bytes);

}  // namespace dstrain
