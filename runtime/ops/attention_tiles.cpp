#include "runtime/ops/attention_tiles.h"

#include <algorithm>

namespace dstrain::ops {

HeadRows head_rows(float* qkv, const HeadLayout& layout, std::int64_t head) {
  const std::int64_t stride = 3 * layout.channels;
  float* const first =
      qkv + head / layout.heads * layout.tokens * stride + head % layout.heads * layout.head_size();
  return {
      {first, stride}, {first + layout.channels, stride}, {first + 2 * layout.channels, stride}};
}

RowBlock head_columns(float* values, const HeadLayout& layout, std::int64_t head) {
  return {values + head / layout.heads * layout.tokens * layout.channels +
              head % layout.heads * layout.head_size(),
          layout.channels};
}

void transpose_head(const RowBlock& rows, const HeadLayout& layout, float* transposed) {
  constexpr std::int64_t block = 16;  // reads and writes stay within a few cache lines
  const std::int64_t tokens = layout.tokens;
  for (std::int64_t first = 0; first < tokens; first += block) {
    const std::int64_t last = std::min(tokens, first + block);
    for (std::int64_t d = 0; d < layout.head_size(); ++d) {
      for (std::int64_t t = first; t < last; ++t) transposed[d * tokens + t] = rows.row(t)[d];
    }
  }
}

void multiply_scores(const ScoreProduct& product, const HeadLayout& layout, ScoreTile& tile) {
  for (std::int64_t i = 0; i < product.queries; ++i) {
    std::fill(tile.row(i), tile.row(i) + product.keys, 0.0F);
  }
  add_tile_product({.c = tile.values,
                    .c_row = attention_block,
                    .a = product.rows.values,
                    .a_row = product.rows.stride,
                    .a_column = 1,
                    .b = product.transposed,
                    .b_row = layout.tokens,
                    .m = product.queries,
                    .n = product.keys,
                    .k = layout.head_size()});
}

}  // namespace dstrain::ops
