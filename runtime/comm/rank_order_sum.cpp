#include "runtime/comm/rank_order_sum.h"

#include <algorithm>
#include <array>

namespace dstrain::comm {
namespace {

/// Floats summed at a time: 4 KiB stay in the first-level cache while the terms stream by.
constexpr std::int64_t block_numel = 1024;

/// Through a local block, because `sum` may be a term that is still to be read.
void add_block(std::span<const float* const> terms,
               std::int64_t offset,
               float* sum,
               std::int64_t numel,
               Writes writes) {
  std::array<float, block_numel> partial;
  const float* so_far = terms[0] + offset;
  for (std::size_t r = 1; r + 1 < terms.size(); ++r) {
    add_floats(so_far, terms[r] + offset, partial.data(), numel, Writes::cached);
    so_far = partial.data();
  }
  add_floats(so_far, terms.back() + offset, sum + offset, numel, writes);
}

}  // namespace

void add_in_rank_order(std::span<const float* const> terms,
                       float* sum,
                       std::int64_t numel,
                       Writes writes) {
  if (terms.size() == 1) {
    copy_bytes(terms[0], sum, numel * Bytes{sizeof(float)}, writes);
  } else if (terms.size() == 2) {
    add_floats(terms[0], terms[1], sum, numel, writes);
  } else {
    // A sum in the place of a term has its lines in the cache already.
    if (std::ranges::find(terms, sum) != terms.end()) writes = Writes::cached;
    for (std::int64_t offset = 0; offset < numel; offset += block_numel) {
      add_block(terms, offset, sum, std::min(block_numel, numel - offset), writes);
    }
  }
}

}  // namespace dstrain::comm
