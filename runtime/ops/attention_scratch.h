#pragma once
#include "runtime/ops/attention.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// Queries of a tile in a GPU's backward.
inline constexpr std::int64_t attention_backward_queries = 32;

/// What a GPU's attention takes in backward: of each query the product of its output and of the
/// gradient of that, and the gradients of biases by tile of queries.
struct AttentionScratch {
  AttentionScratch(Arena& arena, const AttentionSizes& sizes, const AttentionRule& rule)
      : delta(arena.take({sizes.sequences, sizes.heads, sizes.tokens})) {
    if (!rule.buckets.active()) return;
    const std::int64_t tiles =
        (sizes.tokens + attention_backward_queries - 1) / attention_backward_queries;
    bias_sums = arena.take({sizes.sequences, sizes.heads, tiles, rule.buckets.count});
  }
  TensorView delta;
  TensorView bias_sums;
};

}  // namespace dstrain::ops
