#include "runtime/comm/rank_order_sum.h"

#include <algorithm>
#include <array>

namespace dstrain::comm {
namespace {

/// Floats summed at a time: 4 KiB stay in the first-level cache while the terms stream by.
constexpr std::int64_t block_numel = 1024;

// ivdep: the terms and the sum are the same memory or disjoint, so no iteration sees another's.
void add_two(const float* first, const float* second, float* sum, std::int64_t numel) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < numel; ++i) sum[i] = first[i] + second[i];
}

/// Through a local block, because `sum` may be a term that is still to be read.
void add_block(std::span<const float* const> terms,
               std::int64_t offset,
               float* sum,
               std::int64_t numel) {
  std::array<float, block_numel> partial;
  add_two(terms[0] + offset, terms[1] + offset, partial.data(), numel);
  for (std::size_t r = 2; r < terms.size(); ++r) {
    add_two(partial.data(), terms[r] + offset, partial.data(), numel);
  }
  std::copy_n(partial.data(), numel, sum + offset);
}

}  // namespace

void add_in_rank_order(std::span<const float* const> terms, float* sum, std::int64_t numel) {
  if (terms.size() == 1) {
    if (terms[0] != sum) std::copy_n(terms[0], numel, sum);
  } else if (terms.size() == 2) {
    add_two(terms[0], terms[1], sum, numel);
  } else {
    for (std::int64_t offset = 0; offset < numel; offset += block_numel) {
      add_block(terms, offset, sum, std::min(block_numel, numel - offset));
    }
  }
}

}  // namespace dstrain::comm
