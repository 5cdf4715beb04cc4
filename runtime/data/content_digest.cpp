#include "runtime/data/content_digest.h"

#include <vector>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace dstrain::data {

Checksum sampled_checksum(std::span<const std::byte> bytes, std::int64_t blocks) {
  DSTRAIN_CHECK(blocks >= 2, "{} blocks", blocks);
  const auto count = static_cast<std::size_t>(blocks);
  if (bytes.size() <= count * sampled_block_bytes) return checksum_of(bytes);
  std::vector<Checksum> checksums{bytes.size()};
  const std::size_t last = bytes.size() - sampled_block_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    // Quotient and remainder separately, because last * i may overflow.
    const std::size_t begin = last / (count - 1) * i + last % (count - 1) * i / (count - 1);
    checksums.push_back(checksum_of(bytes.subspan(begin, sampled_block_bytes)));
  }
  return combined(checksums);
}

Checksum combined(std::span<const Checksum> checksums) {
  return checksum_of(std::as_bytes(checksums));
}

std::string digest_text(Checksum checksum) {
  return fmt::format("{:016x}", checksum);
}

}  // namespace dstrain::data
