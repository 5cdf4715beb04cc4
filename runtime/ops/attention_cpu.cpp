#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/parallel_for.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Running softmax of the queries of a block.
struct RunningSoftmax {
  float largest[attention_block];
  float sum[attention_block];
};

/// Turns a row of raw scores into weights e^(scale s - largest), zero past `visible`; moves the
/// running maximum and sum on. Returns the factor for what was summed before.
DSTRAIN_SIMD_CLONES
float softmax_row(float* scores, std::int64_t visible, float scale, float& largest, float& sum) {
  for (std::int64_t j = 0; j < visible; ++j) scores[j] *= scale;
  const float new_largest = max_lanes(scores, visible, largest);
  const float factor = fast_exp(largest - new_largest);
  for (std::int64_t j = 0; j < visible; ++j) scores[j] = fast_exp(scores[j] - new_largest);
  sum = sum * factor + sum_lanes(visible, [scores](std::int64_t j) { return scores[j]; });
  largest = new_largest;
  return factor;
}

DSTRAIN_SIMD_CLONES
void scale_row(float* row, std::int64_t count, float factor) {
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
}

DSTRAIN_SIMD_CLONES
void drop_row(float* row,
              std::int64_t count,
              const DropoutSite& site,
              std::int64_t sequence,
              std::int64_t group) {
  float multipliers[dropout_group];
  dropout_multipliers(site, sequence, group, multipliers);
  for (std::int64_t j = 0; j < count; ++j) row[j] *= multipliers[j];
}

/// One block of queries of one head.
struct QueryBlock {
  HeadLayout layout;
  HeadRows rows;
  RowBlock output;    ///< of the block's first query
  const float* keys;  ///< (D, T) transposed
  float* logsumexp;   ///< of the block's first query
  const DropoutSite& site;
  std::int64_t head;
  std::int64_t block;
  [[nodiscard]] std::int64_t first() const { return block * attention_block; }
  [[nodiscard]] std::int64_t queries() const {
    return std::min(attention_block, layout.tokens - first());
  }
};

/// Adds the keys of tile `key_tile` to the output rows and the running softmax.
void attend_to_tile(const QueryBlock& q,
                    std::int64_t key_tile,
                    ScoreTile& scores,
                    RunningSoftmax& softmax) {
  const std::int64_t first_key = key_tile * attention_block;
  const std::int64_t keys = std::min(attention_block, q.layout.tokens - first_key);
  const std::int64_t head_size = q.layout.head_size();
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_size));
  multiply_scores({q.rows.query.from(q.first()), q.keys + first_key, q.queries(), keys}, q.layout,
                  scores);
  for (std::int64_t i = 0; i < q.queries(); ++i) {
    float* const row = scores.row(i);
    const std::int64_t visible = visible_keys(key_tile == q.block, i, keys);
    const float factor = softmax_row(row, visible, scale, softmax.largest[i], softmax.sum[i]);
    std::fill(row + visible, row + keys, 0.0F);
    if (factor != 1.0F) scale_row(q.output.row(i), head_size, factor);
    if (q.site.active()) {
      drop_row(row, visible, q.site, q.head / q.layout.heads,
               score_dropout_group(q.layout, q.head, q.first() + i, key_tile));
    }
  }
  add_tile_product({.c = q.output.values,
                    .c_row = q.output.stride,
                    .a = scores.values,
                    .a_row = attention_block,
                    .a_column = 1,
                    .b = q.rows.value.row(first_key),
                    .b_row = q.rows.value.stride,
                    .m = q.queries(),
                    .n = head_size,
                    .k = keys});
}

void attend(const QueryBlock& q) {
  const std::int64_t head_size = q.layout.head_size();
  ScoreTile scores;
  RunningSoftmax softmax;
  std::fill_n(softmax.largest, attention_block, -std::numeric_limits<float>::max());
  std::fill_n(softmax.sum, attention_block, 0.0F);
  for (std::int64_t i = 0; i < q.queries(); ++i) std::fill_n(q.output.row(i), head_size, 0.0F);
  for (std::int64_t tile = 0; tile <= q.block; ++tile) attend_to_tile(q, tile, scores, softmax);
  for (std::int64_t i = 0; i < q.queries(); ++i) {
    scale_row(q.output.row(i), head_size, 1.0F / softmax.sum[i]);
    q.logsumexp[i] = softmax.largest[i] + std::log(softmax.sum[i]);
  }
}

HeadLayout checked_layout(const AttentionArgs& args) {
  const Shape& qkv = args.qkv.shape();
  const Shape& lse = args.logsumexp.shape();
  DSTRAIN_CHECK(qkv.rank() == 3 && lse.rank() == 3 && lse[1] > 0 && qkv[2] % (3 * lse[1]) == 0,
                "qkv {} logsumexp {}", to_string(qkv), to_string(lse));
  const HeadLayout layout{qkv[0], qkv[1], lse[1], qkv[2] / 3};
  require_f32(args.qkv, qkv, "qkv");
  require_f32(args.output, {layout.sequences, layout.tokens, layout.channels}, "output");
  require_f32(args.logsumexp, {layout.sequences, layout.heads, layout.tokens}, "logsumexp");
  require_f32(args.workspace,
              {attention_forward_workspace(layout.sequences * layout.tokens, layout.channels)},
              "workspace");
  return layout;
}

}  // namespace

std::int64_t attention_forward_workspace(std::int64_t rows, std::int64_t channels) {
  return rows * channels;
}

void attention_forward(const AttentionArgs& args, StreamView stream) {
  const HeadLayout layout = checked_layout(args);
  stream.launch([args, layout] {
    const std::int64_t heads = layout.sequences * layout.heads;
    const std::int64_t head_numel = layout.tokens * layout.head_size();
    parallel_for(heads, [&](std::int64_t head) {
      transpose_head(head_rows(floats(args.qkv), layout, head).key, layout,
                     floats(args.workspace) + head * head_numel);
    });
    parallel_for(heads * layout.tiles(), [&](std::int64_t task) {
      const std::int64_t head = task / layout.tiles();
      const std::int64_t block = task % layout.tiles();
      const std::int64_t first = block * attention_block;
      attend({.layout = layout,
              .rows = head_rows(floats(args.qkv), layout, head),
              .output = head_columns(floats(args.output), layout, head).from(first),
              .keys = floats(args.workspace) + head * head_numel,
              .logsumexp = floats(args.logsumexp) + head * layout.tokens + first,
              .site = args.dropout,
              .head = head,
              .block = block});
    });
  });
}

}  // namespace dstrain::ops
