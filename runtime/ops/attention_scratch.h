#pragma once
#include <algorithm>

#include "runtime/ops/attention.h"
#include "runtime/tensor/arena.h"

namespace dstrain::ops {

/// Queries per tile in a GPU's backward for f32, and for 16-bit dtypes.
inline constexpr std::int64_t attention_backward_queries = 32;
inline constexpr std::int64_t attention_backward_half_queries = 64;

/// The gradients of scores that a GPU's 16-bit backward keeps between its two kernels, so that they
/// are computed once: 16-bit elements in patches of 32 queries by 64 keys, for as many heads of
/// keys at once as fit into `bytes_max`. Both kernels compute them if there are biases by distance,
/// whose gradients need f32, or if too few heads fit to occupy a GPU.
struct ScoreGradients {
  static constexpr std::int64_t queries = 32;
  static constexpr std::int64_t keys = 64;
  static constexpr Bytes bytes_max = Bytes{5} << 28;
  static constexpr std::int64_t blocks_min = 512;  ///< of `keys` keys, if not all heads fit
  static constexpr std::int64_t head_size_max = 128;

  ScoreGradients(const AttentionSizes& sizes, const AttentionRule& rule)
      : causal(rule.causal), key_tiles((sizes.keys + keys - 1) / keys) {
    head_patches = patches_before((sizes.tokens + queries - 1) / queries);
    if (rule.buckets.active() || sizes.head_size > head_size_max || head_patches == 0) return;
    const Bytes bytes = head_patches * sizes.group() * queries * keys * size_of(DType::bf16);
    const std::int64_t most = bytes_max / bytes;
    if (most == 0) return;
    const std::int64_t sequences_most = most / sizes.kv_heads;
    const std::int64_t even_sequences =
        even(sizes.sequences, std::max<std::int64_t>(sequences_most, 1));
    const std::int64_t even_heads = even(sizes.kv_heads, most);
    const bool all = most >= sizes.sequences * sizes.kv_heads;
    if (!all && even_sequences * even_heads * key_tiles < blocks_min) return;
    sequences = even_sequences;
    kv_heads = even_heads;
  }
  /// Patches of a head for earlier queries; causal ones end at the diagonal.
  [[nodiscard]] constexpr std::int64_t patches_before(std::int64_t query_tile) const {
    if (!causal) return query_tile * key_tiles;
    const std::int64_t half = query_tile / 2;
    return (half + query_tile % 2) * (half + 1);
  }

  bool causal;
  std::int64_t key_tiles;
  std::int64_t head_patches = 0;
  std::int64_t sequences = 0;  ///< at once; 0: gradients are not kept
  std::int64_t kv_heads = 0;   ///< of each of them at once

 private:
  /// Returns the smallest number that covers `all` in as few rounds as `most` at once.
  static std::int64_t even(std::int64_t all, std::int64_t most) {
    const std::int64_t rounds = (all + most - 1) / most;
    return (all + rounds - 1) / rounds;
  }
};

/// 16-bit queries and keys after their rotary embedding, for a GPU's kernels to read. The dtype
/// only gives the size.
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

/// A GPU's scratch memory for attention's backward: for each query the product of its output and
/// the output's gradient, the gradients of biases by tile of queries, the rotated queries and keys,
/// and the gradients of scores.
struct AttentionScratch {
  AttentionScratch(Arena& arena, const AttentionSizes& sizes, const AttentionRule& rule)
      : delta(arena.take({sizes.sequences, sizes.heads, sizes.tokens})),
        bias_sums(take_bias_sums(arena, sizes, rule)),
        turned(arena, sizes, rule),
        scores(sizes, rule),
        score_gradients(take_score_gradients(arena, sizes, scores)) {}
  TensorView delta;
  TensorView bias_sums;
  TurnedHeads turned;
  ScoreGradients scores;
  TensorView score_gradients;

 private:
  static TensorView take_bias_sums(Arena& arena,
                                   const AttentionSizes& sizes,
                                   const AttentionRule& rule) {
    if (!rule.buckets.active()) return {};
    const std::int64_t tiles =
        (sizes.tokens + attention_backward_queries - 1) / attention_backward_queries;
    return arena.take({sizes.sequences, sizes.heads, tiles, rule.buckets.count});
  }
  static TensorView take_score_gradients(Arena& arena,
                                         const AttentionSizes& sizes,
                                         const ScoreGradients& scores) {
    if (scores.sequences == 0) return {};
    return arena.take({scores.sequences * scores.kv_heads * sizes.group() * scores.head_patches,
                       ScoreGradients::queries * ScoreGradients::keys},
                      DType::bf16);
  }
};

}  // namespace dstrain::ops
