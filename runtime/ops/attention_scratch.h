#pragma once
#include "runtime/ops/attention.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// Queries of a tile in a GPU's backward of f32, and in that of halves.
inline constexpr std::int64_t attention_backward_queries = 32;
inline constexpr std::int64_t attention_backward_half_queries = 64;

/// Queries and keys of halves as their rotary embedding turns them, for a GPU's kernels to read.
/// The dtype is one of those of their size.
struct TurnedHeads {
  TurnedHeads(Arena& arena, const AttentionSizes& sizes, const AttentionRule& rule) {
    if (!rule.rotary.active()) return;
    query =
        arena.take({sizes.sequences * sizes.tokens, sizes.heads * sizes.head_size}, DType::bf16);
    key = arena.take({sizes.sequences * sizes.keys, sizes.kv_heads * sizes.head_size}, DType::bf16);
  }
  TensorView query;
  TensorView key;
};

/// What a GPU's attention takes in backward: of each query the product of its output and of the
/// gradient of that, the gradients of biases by tile of queries, and what is turned.
struct AttentionScratch {
  AttentionScratch(Arena& arena, const AttentionSizes& sizes, const AttentionRule& rule)
      : delta(arena.take({sizes.sequences, sizes.heads, sizes.tokens})),
        bias_sums(take_bias_sums(arena, sizes, rule)),
        turned(arena, sizes, rule) {}
  TensorView delta;
  TensorView bias_sums;
  TurnedHeads turned;

 private:
  static TensorView take_bias_sums(Arena& arena,
                                   const AttentionSizes& sizes,
                                   const AttentionRule& rule) {
    if (!rule.buckets.active()) return {};
    const std::int64_t tiles =
        (sizes.tokens + attention_backward_queries - 1) / attention_backward_queries;
    return arena.take({sizes.sequences, sizes.heads, tiles, rule.buckets.count});
  }
};

}  // namespace dstrain::ops
