#include "runtime/base/checksum.h"

#include <xxhash.h>

namespace dstrain {

Checksum checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace dstrain
