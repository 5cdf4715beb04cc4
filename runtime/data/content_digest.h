#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/checksum.h"

namespace dstrain::data {

/// How many blocks of a token stream's large files are hashed, over all of its files.
inline constexpr std::int64_t sampled_blocks = 256;
inline constexpr std::size_t sampled_block_bytes = std::size_t{64} << 10;

/// Checksum of a mapped file that nobody reads whole: of all its bytes if they are no more than
/// `blocks` blocks, else of its size and of `blocks` (at least two) evenly spaced blocks, the first
/// and the last among them. So every change of the size is noticed, and every rewritten range that
/// is longer than the file's size / (blocks - 1).
Checksum sampled_checksum(std::span<const std::byte> bytes, std::int64_t blocks);

/// The checksum of several, in their order.
Checksum combined(std::span<const Checksum> checksums);

/// 16 hexadecimal digits, as trainer_state.json has it.
std::string digest_text(Checksum checksum);

}  // namespace dstrain::data
