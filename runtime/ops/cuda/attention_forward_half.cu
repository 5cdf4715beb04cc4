#include "runtime/ops/cuda/attention_forward.h"
#include "runtime/ops/cuda/attention_half.h"
#include "runtime/ops/cuda/turn_heads.h"

namespace dstrain::ops::gpu {
namespace {

template <class T>
struct HalfForward : AttentionForward<T> {
  bool copies_inputs = false;  ///< whether they can be copied 16 bytes at a time
  bool copies_output = false;  ///< likewise
};

/// Resident blocks per multiprocessor that the kernel is compiled for.
constexpr int half_blocks_at_once(int columns) {
  return columns > 64 && columns <= 128 ? 3 : 2;
}

/// Tiles of 16 queries per warp. Two tiles halve the loads from shared memory per product.
template <int columns>
constexpr int warp_tiles = columns <= 64 ? 2 : 1;
template <int columns>
constexpr int block_queries = warp_tiles<columns>* half_rows;

template <class T, int columns>
struct Shared {
  HalfTile<T, block_queries<columns>, columns> queries;  ///< then outputs
  HalfTile<T, key_tile, columns> keys;
  HalfTile<T, key_tile, columns> values;
  float biases[block_queries<columns> + key_tile];
};

/// A thread's state of its two rows of a tile.
struct Rows {
  float largest[2]{nothing, nothing};  ///< before score_factor()
  float sum[2]{};                      ///< over the thread's own weights
};
/// A thread's state of all its rows.
template <int columns>
struct WarpRows {
  Rows of_tile[warp_tiles<columns>];
  FragmentC output[warp_tiles<columns>][columns / 8]{};
};

template <class T, int columns>
DSTRAIN_DEVICE void start_keys(const HalfForward<T>& args,
                               const AttentionPlace& at,
                               Shared<T, columns>& s) {
  start_tile(key_rows(args.sizes, args.key, at), args.copies_inputs, s.keys);
  load_biases<half_threads, block_queries<columns>>(args.bias, args.bias_table, args.sizes.heads,
                                                    at.head, at.key() - at.query, s.biases);
}

/// Turns the scores of a row into weights 2^(factor (score - largest)), updates its maximum and
/// sum, and rescales its outputs.
template <int count>
DSTRAIN_DEVICE void weigh_row(int which,
                              float factor,
                              Rows& rows,
                              FragmentC (&scores)[key_tile / 8],
                              FragmentC (&output)[count]) {
  float largest = rows.largest[which];
#pragma unroll
  for (const FragmentC& own : scores) {
    largest = fmaxf(largest, fmaxf(own.sums[2 * which], own.sums[2 * which + 1]));
  }
  largest = largest_of_row(largest);
  const float base = largest == nothing ? 0.0F : largest * factor;
  float sum = 0;
#pragma unroll
  for (FragmentC& own : scores) {
#pragma unroll
    for (int i = 2 * which; i < 2 * which + 2; ++i) {
      own.sums[i] = approximate_exp2(own.sums[i] * factor - base);
      sum += own.sums[i];
    }
  }
  const float before = approximate_exp2(rows.largest[which] * factor - base);
  rows.sum[which] = rows.sum[which] * before + sum;
  rows.largest[which] = largest;
#pragma unroll
  for (FragmentC& own : output) {
#pragma unroll
    for (int i = 2 * which; i < 2 * which + 2; ++i) own.sums[i] *= before;
  }
}

/// Computes weights from queries and keys, with dropout applied.
template <class T, int columns>
DSTRAIN_DEVICE void compute_weights(const HalfForward<T>& args,
                                    const AttentionPlace& at,
                                    const Shared<T, columns>& s,
                                    WarpRows<columns>& rows,
                                    FragmentC (&scores)[warp_tiles<columns>][key_tile / 8]) {
  constexpr int tiles = warp_tiles<columns>;
  add_product_transposed(s.queries, warp() * tiles * 16, s.keys, scores);
  finish_scores(args, at, s.biases, scores);
  const float factor = score_factor(args);
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      weigh_row(which, factor, rows.of_tile[tile], scores[tile], rows.output[tile]);
      if (!args.mask.active()) continue;
      const std::int64_t query = at.query + block_row(which, tile, tiles);
      drop_row(args.mask, at.sequence, dropout_group(args.sizes, at.head, query, at.tile), which,
               scores[tile]);
    }
  }
}

/// Divides the outputs by the sums of weights and writes them over the queries.
template <class T, int columns>
DSTRAIN_DEVICE void finish_rows(const HalfForward<T>& args,
                                const AttentionPlace& at,
                                const WarpRows<columns>& rows,
                                Shared<T, columns>& s) {
  constexpr int tiles = warp_tiles<columns>;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const float sum = sum_of_row(rows.of_tile[tile].sum[which]);
      const bool sees = sum > 0;  // a query that sees no key gets zeros
      const float inverse = sees ? 1.0F / sum : 0.0F;
      const int row = block_row(which, tile, tiles);
#pragma unroll
      for (int i = 0; i < columns / 8; ++i) {
        const float* const own = &rows.output[tile][i].sums[2 * which];
        store_pair(&s.queries.element[row][i * 8 + fragment_column()],
                   pack<T>(own[0] * inverse, own[1] * inverse));
      }
      const std::int64_t query = at.query + row;
      if (fragment_column() != 0 || query >= args.sizes.tokens) continue;
      const float largest = rows.of_tile[tile].largest[which] * score_factor(args);
      args.logsumexp[(at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query] =
          sees ? ln_2 * (largest + log2f(sum)) : 0.0F;
    }
  }
}

/// Grid: (heads, sequences, query tiles); tiles that see most keys start first. Values are copied
/// while scores are computed, and the next keys while values are added.
template <class T, int columns>
DSTRAIN_KERNEL_AT_ONCE(half_threads, half_blocks_at_once(columns))
half_forward_kernel(DSTRAIN_ARGUMENT HalfForward<T> args) {
  constexpr int tiles = warp_tiles<columns>;
  constexpr int warp_rows = tiles * 16;
  auto& s = shared<Shared<T, columns>>();
  AttentionPlace at(block_y(), block_x(), block_x() / args.sizes.group());
  at.query = (blocks_z() - 1 - block_z()) * block_queries<columns>;
  start_tile(query_rows(args.sizes, args.query, at), args.copies_inputs, s.queries);
  WarpRows<columns> rows;
  const Sight::Range range = args.sight.of_tile(at.sequence, at.query, block_queries<columns>);
  const std::int32_t tiles_end = (range.end + key_tile - 1) / key_tile;
  at.tile = range.begin / key_tile;
  if (at.tile < tiles_end) start_keys(args, at, s);
  while (at.tile < tiles_end) {
    FragmentC scores[tiles][key_tile / 8]{};
    const bool sees = args.sight.of_tile(at.sequence, at.query + warp() * warp_rows, warp_rows)
                          .meets(at.key(), key_tile);
    arrive();
    start_tile(key_rows(args.sizes, args.value, at), args.copies_inputs, s.values);
    if (sees) compute_weights(args, at, s, rows, scores);
    arrive();
    ++at.tile;
    if (at.tile < tiles_end) start_keys(args, at, s);
    if (sees) add_rounded_product<T>(scores, s.values, rows.output);
  }
  arrive();  // without keys, the queries may still be in flight
  finish_rows(args, at, rows, s);
  sync();
  store_halves(s.queries, query_rows(args.sizes, args.output, at), args.copies_output);
}

}  // namespace

template <class T>
void launch_half_forward(const AttentionForward<T>& forward,
                         const TurnedHeads& turned,
                         StreamView stream) {
  const AttentionSizes& sizes = forward.sizes;
  HalfForward<T> args{forward};
  turn_inputs(args, turned, stream);
  args.copies_inputs = is_aligned(args.query, sizes.head_size) &&
                       is_aligned(args.key, sizes.head_size) &&
                       is_aligned(args.value, sizes.head_size);
  args.copies_output = is_aligned(args.output, sizes.head_size);
  with_columns(sizes.head_size, [&](auto columns) {
    launch("attention_forward", half_forward_kernel<T, columns>,
           {.x = sizes.heads,
            .y = sizes.sequences,
            .z = divide_up(sizes.tokens, block_queries<columns>),
            .threads = half_threads,
            .shared_bytes = sizeof(Shared<T, columns>)},
           args, stream);
  });
}
template void launch_half_forward<BFloat16>(const AttentionForward<BFloat16>&,
                                            const TurnedHeads&,
                                            StreamView);
template void launch_half_forward<Float16>(const AttentionForward<Float16>&,
                                           const TurnedHeads&,
                                           StreamView);

}  // namespace dstrain::ops::gpu
