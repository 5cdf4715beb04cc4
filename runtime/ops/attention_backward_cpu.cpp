#include <algorithm>
#include <cmath>

#include "runtime/base/parallel_for.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Everything about one head. With P the probabilities, Z the dropout multipliers, dP the gradient
/// of P Z: dS = scale P (dP Z - delta), delta = sum_j P_j (dP Z)_j = dO . O per query.
struct Head {
  HeadLayout layout;
  HeadRows rows;
  HeadRows gradients;
  RowBlock output_gradient;
  const float* keys;    ///< (D, T) transposed
  const float* values;  ///< (D, T) transposed
  const float* logsumexp;
  const float* delta;
  const DropoutSite& site;
  std::int64_t head;
};

/// A row of raw scores becomes the dropped probabilities, a row of dP becomes dS.
struct RowTerms {
  float scale;
  float logsumexp;
  float delta;
};

DSTRAIN_SIMD_CLONES
void plain_row(float* __restrict scores,
               float* __restrict gradient,
               std::int64_t visible,
               RowTerms terms) {
  for (std::int64_t j = 0; j < visible; ++j) {
    const float p = fast_exp(scores[j] * terms.scale - terms.logsumexp);
    scores[j] = p;
    gradient[j] = terms.scale * p * (gradient[j] - terms.delta);
  }
}

DSTRAIN_SIMD_CLONES
void dropped_row(float* __restrict scores,
                 float* __restrict gradient,
                 std::int64_t visible,
                 RowTerms terms,
                 const DropoutSite& site,
                 std::int64_t sequence,
                 std::int64_t group) {
  float multipliers[dropout_group];
  dropout_multipliers(site, sequence, group, multipliers);
  for (std::int64_t j = 0; j < visible; ++j) {
    const float p = fast_exp(scores[j] * terms.scale - terms.logsumexp);
    scores[j] = p * multipliers[j];
    gradient[j] = terms.scale * p * (gradient[j] * multipliers[j] - terms.delta);
  }
}

DSTRAIN_SIMD_CLONES
float dot(const float* a, const float* b, std::int64_t count) {
  return sum_lanes(count, [a, b](std::int64_t i) { return a[i] * b[i]; });
}

/// Rows and columns of one tile.
struct Tile {
  std::int64_t query_block;
  std::int64_t key_block;
  std::int64_t first_query;
  std::int64_t first_key;
  std::int64_t queries;
  std::int64_t keys;
};

Tile make_tile(const HeadLayout& layout, std::int64_t query_block, std::int64_t key_block) {
  const std::int64_t first_query = query_block * attention_block;
  const std::int64_t first_key = key_block * attention_block;
  return {query_block,
          key_block,
          first_query,
          first_key,
          std::min(attention_block, layout.tokens - first_query),
          std::min(attention_block, layout.tokens - first_key)};
}

/// Fills `weights` with P Z and `gradients` with dS.
void recompute_tile(const Head& h, const Tile& tile, ScoreTile& weights, ScoreTile& gradients) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(h.layout.head_size()));
  multiply_scores(
      {h.rows.query.from(tile.first_query), h.keys + tile.first_key, tile.queries, tile.keys},
      h.layout, weights);
  multiply_scores({h.output_gradient.from(tile.first_query), h.values + tile.first_key,
                   tile.queries, tile.keys},
                  h.layout, gradients);
  for (std::int64_t i = 0; i < tile.queries; ++i) {
    const std::int64_t query = tile.first_query + i;
    const RowTerms terms{scale, h.logsumexp[query], h.delta[query]};
    const std::int64_t visible = visible_keys(tile.query_block == tile.key_block, i, tile.keys);
    if (h.site.active()) {
      dropped_row(weights.row(i), gradients.row(i), visible, terms, h.site, h.head / h.layout.heads,
                  score_dropout_group(h.layout, h.head, query, tile.key_block));
    } else {
      plain_row(weights.row(i), gradients.row(i), visible, terms);
    }
    std::fill(weights.row(i) + visible, weights.row(i) + tile.keys, 0.0F);
    std::fill(gradients.row(i) + visible, gradients.row(i) + tile.keys, 0.0F);
  }
}

/// target (keys, D) += tile^T rows: the gradient of keys or values.
void add_transposed(const Tile& tile,
                    const ScoreTile& scores,
                    RowBlock rows,
                    RowBlock target,
                    std::int64_t head_size) {
  add_tile_product({.c = target.row(tile.first_key),
                    .c_row = target.stride,
                    .a = scores.values,
                    .a_row = 1,
                    .a_column = attention_block,
                    .b = rows.row(tile.first_query),
                    .b_row = rows.stride,
                    .m = tile.keys,
                    .n = head_size,
                    .k = tile.queries});
}

void add_tile_gradients(const Head& h,
                        const Tile& tile,
                        const ScoreTile& weights,
                        const ScoreTile& gradients) {
  const std::int64_t head_size = h.layout.head_size();
  add_transposed(tile, weights, h.output_gradient, h.gradients.value, head_size);
  add_transposed(tile, gradients, h.rows.query, h.gradients.key, head_size);
  add_tile_product({.c = h.gradients.query.row(tile.first_query),
                    .c_row = h.gradients.query.stride,
                    .a = gradients.values,
                    .a_row = attention_block,
                    .a_column = 1,
                    .b = h.rows.key.row(tile.first_key),
                    .b_row = h.rows.key.stride,
                    .m = tile.queries,
                    .n = head_size,
                    .k = tile.keys});
}

void head_backward(const Head& h) {
  const std::int64_t head_size = h.layout.head_size();
  for (std::int64_t t = 0; t < h.layout.tokens; ++t) {
    std::fill_n(h.gradients.query.row(t), head_size, 0.0F);
    std::fill_n(h.gradients.key.row(t), head_size, 0.0F);
    std::fill_n(h.gradients.value.row(t), head_size, 0.0F);
  }
  ScoreTile weights;
  ScoreTile gradients;
  for (std::int64_t key_block = 0; key_block < h.layout.tiles(); ++key_block) {
    for (std::int64_t query_block = key_block; query_block < h.layout.tiles(); ++query_block) {
      const Tile tile = make_tile(h.layout, query_block, key_block);
      recompute_tile(h, tile, weights, gradients);
      add_tile_gradients(h, tile, weights, gradients);
    }
  }
}

HeadLayout checked_layout(const AttentionBackwardArgs& args) {
  const Shape& qkv = args.qkv.shape();
  const Shape& lse = args.logsumexp.shape();
  DSTRAIN_CHECK(qkv.rank() == 3 && lse.rank() == 3 && lse[1] > 0 && qkv[2] % (3 * lse[1]) == 0,
                "qkv {} logsumexp {}", to_string(qkv), to_string(lse));
  const HeadLayout layout{qkv[0], qkv[1], lse[1], qkv[2] / 3};
  const Shape output{layout.sequences, layout.tokens, layout.channels};
  require_f32(args.qkv, qkv, "qkv");
  require_f32(args.output, output, "output");
  require_f32(args.output_gradient, output, "output_gradient");
  require_f32(args.qkv_gradient, qkv, "qkv_gradient");
  require_f32(args.logsumexp, {layout.sequences, layout.heads, layout.tokens}, "logsumexp");
  require_f32(args.workspace,
              {attention_backward_workspace(layout.sequences * layout.tokens, layout.channels,
                                            layout.heads)},
              "workspace");
  return layout;
}

void run_head(const AttentionBackwardArgs& args, const HeadLayout& layout, std::int64_t head) {
  const std::int64_t head_size = layout.head_size();
  const std::int64_t numel = layout.sequences * layout.tokens * layout.channels;
  float* const keys = floats(args.workspace) + head * layout.tokens * head_size;
  float* const values = keys + numel;
  float* const delta = floats(args.workspace) + 2 * numel + head * layout.tokens;
  const HeadRows rows = head_rows(floats(args.qkv), layout, head);
  const RowBlock output = head_columns(floats(args.output), layout, head);
  const RowBlock output_gradient = head_columns(floats(args.output_gradient), layout, head);
  transpose_head(rows.key, layout, keys);
  transpose_head(rows.value, layout, values);
  for (std::int64_t t = 0; t < layout.tokens; ++t) {
    delta[t] = dot(output.row(t), output_gradient.row(t), head_size);
  }
  head_backward({.layout = layout,
                 .rows = rows,
                 .gradients = head_rows(floats(args.qkv_gradient), layout, head),
                 .output_gradient = output_gradient,
                 .keys = keys,
                 .values = values,
                 .logsumexp = floats(args.logsumexp) + head * layout.tokens,
                 .delta = delta,
                 .site = args.dropout,
                 .head = head});
}

}  // namespace

std::int64_t attention_backward_workspace(std::int64_t rows,
                                          std::int64_t channels,
                                          std::int64_t heads) {
  return rows * (2 * channels + heads);
}

void attention_backward(const AttentionBackwardArgs& args, StreamView stream) {
  const HeadLayout layout = checked_layout(args);
  stream.launch([args, layout] {
    parallel_for(layout.sequences * layout.heads,
                 [&](std::int64_t head) { run_head(args, layout, head); });
  });
}

}  // namespace dstrain::ops
