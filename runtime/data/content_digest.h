#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/checksum.h"

namespace dstrain::data {

/// Number of hashed blocks of a token stream's large files, over all of its files.
inline constexpr std::int64_t sampled_blocks = 256;
inline constexpr std::size_t sampled_block_bytes = std::size_t{64} << 10;

/// Returns a checksum of a mapped file that is never read completely: of all its bytes if they are
/// no more than `blocks` blocks, else of its size and of `blocks` (at least two) evenly spaced
/// blocks, including the first and the last. It detects every change of the size, and every
/// rewritten range that is longer than the file's size / (blocks - 1).
Checksum sampled_checksum(std::span<const std::byte> bytes, std::int64_t blocks);

/// Returns the checksum of several, in order.
Checksum combined(std::span<const Checksum> checksums);

/// Returns 16 hexadecimal digits, as in trainer_state.json.
std::string digest_text(Checksum checksum);

}  // namespace dstrain::data
