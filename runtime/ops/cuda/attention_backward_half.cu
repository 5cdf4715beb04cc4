#include <algorithm>

#include "runtime/ops/cuda/attention_backward.h"
#include "runtime/ops/cuda/attention_half.h"
#include "runtime/ops/cuda/turn_heads.h"

namespace dstrain::ops::gpu {
namespace {

static_assert(half_rows == attention_backward_half_queries && half_rows == key_tile);

template <class T>
struct HalfBackward : AttentionBackward<T> {
  bool copies = false;  ///< what is read: 16 bytes at a time
};

/// Sums of a block, for what turns them back and stores them.
template <int columns>
struct SumTile {
  float sum[half_rows][columns + padding];
};

template <int columns>
DSTRAIN_DEVICE void put_sums(const FragmentC (&sums)[columns / 8], SumTile<columns>& tile) {
  for_each_sum(sums, [&](int which, int column, const float& sum) {
    tile.sum[block_row(which)][column] = sum;
  });
}

// Keys: a block has a tile of keys and takes turns of queries. Rows of what it computes are keys,
// so that scores, transposed, are where the next product takes them from.

/// Queries of a turn: what registers have room for beside two gradients of 128 columns.
constexpr int turn_queries = 32;

/// Where registers do not do for both gradients, one kernel computes one, another the other.
enum class Wanted : std::uint8_t { both, keys, values };

/// The queries of a turn, and what is known of them.
template <class T, int columns>
struct Queries {
  HalfTile<T, turn_queries, columns> queries;
  HalfTile<T, turn_queries, columns> output_gradient;
  float logsumexp[turn_queries];  ///< times log2(e)
  float delta[turn_queries];
  Sight::Range visible[turn_queries];   ///< counted from the first key on
  std::uint8_t kept[turn_queries][16];  ///< bit i: dropout leaves the key of 16 i + the index
  float biases[turn_queries + key_tile];
};

template <class T, int columns>
struct KeyShared {
  HalfTile<T, key_tile, columns> keys;
  HalfTile<T, key_tile, columns> values;
  Queries<T, columns> turn[2];
};

template <class T, int columns>
DSTRAIN_DEVICE void draw_kept(const HalfBackward<T>& args,
                              const AttentionPlace& at,
                              Queries<T, columns>& q) {
#pragma unroll 1
  for (int i = thread(); i < turn_queries * 16; i += half_threads) {
    const int query = i / 16;
    const DropoutMask::Four drawn = args.mask.draw(
        at.sequence, dropout_group(args.sizes, at.head, at.query + query, at.tile), i % 16);
    unsigned kept = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (drawn.multiplier[j] > 0) kept |= 1U << j;
    }
    q.kept[query][i % 16] = static_cast<std::uint8_t>(kept);
  }
}

template <class T, int columns>
DSTRAIN_DEVICE void start_queries(const HalfBackward<T>& args,
                                  const AttentionPlace& at,
                                  Queries<T, columns>& q) {
  start_tile(query_rows(args.sizes, args.query, at), args.copies, q.queries);
  start_tile(query_rows(args.sizes, args.output_gradient, at), args.copies, q.output_gradient);
  load_biases<half_threads, turn_queries>(args.bias, args.bias_table, args.sizes.heads, at.head,
                                          at.key() - at.query, q.biases);
  if (args.mask.active()) draw_kept(args, at, q);
  if (thread() >= turn_queries) return;
  const std::int64_t query = at.query + thread();
  const std::int64_t of_query =
      (at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query;
  const bool exists = query < args.sizes.tokens;
  q.logsumexp[thread()] = exists ? args.logsumexp[of_query] * log2_e : 0.0F;
  q.delta[thread()] = exists ? args.delta[of_query] : 0.0F;
  q.visible[thread()] = args.sight.of(at.sequence, query).from(at.key());
}

/// Moves on to queries of the head or of the next one, before `heads`, of which some may see the
/// keys; whether there are any.
template <class T>
DSTRAIN_DEVICE bool find_queries(const HalfBackward<T>& args,
                                 std::int64_t heads,
                                 AttentionPlace& at) {
  const std::int64_t first = args.sight.causal ? at.key() / turn_queries * turn_queries : 0;
  for (; at.head < heads; ++at.head) {
    at.query = at.query < first ? first : at.query;
    for (; at.query < args.sizes.tokens; at.query += turn_queries) {
      if (sees(args, at, turn_queries)) return true;
    }
    at.query = 0;
  }
  return false;
}

/// The transpose of finish_scores(), of what keys and queries multiply to.
template <class T, int columns>
DSTRAIN_DEVICE void finish_transposed_scores(const HalfBackward<T>& args,
                                             const AttentionPlace& at,
                                             const Queries<T, columns>& q,
                                             FragmentC (&scores)[turn_queries / 8]) {
  for_each_sum(scores, [&](int, int query, float& score) {
    score = score * args.query_factor - q.logsumexp[query];
  });
  if (args.bias.active()) {
    for_each_sum(scores, [&](int which, int query, float& score) {
      score += q.biases[block_row(which) - query + turn_queries - 1];
    });
  }
  if (args.sight.all_see(at.sequence, at.query, turn_queries, at.key())) return;
  for_each_sum(scores, [&](int which, int query, float& score) {
    if (!q.visible[query].contains(block_row(which))) score = nothing;
  });
}

/// Turns scores into P Z and dP into dS, both transposed.
template <class T, int columns>
DSTRAIN_DEVICE void weigh_keys(const HalfBackward<T>& args,
                               const Queries<T, columns>& q,
                               FragmentC (&weights)[turn_queries / 8],
                               FragmentC (&gradients)[turn_queries / 8]) {
  for_each_sum(weights, [&](int, int, float& weight) { weight = approximate_exp2(weight); });
#pragma unroll
  for (int i = 0; i < turn_queries / 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int query = i * 8 + fragment_column() + j % 2;
      float& weight = weights[i].sums[j];
      float& gradient = gradients[i].sums[j];
      float multiplier = 1;
      if (args.mask.active()) {
        const int key = block_row(j / 2);
        multiplier = (q.kept[query][key % 16] >> (key / 16) & 1U) != 0 ? args.mask.kept : 0.0F;
      }
      gradient = weight * (gradient * multiplier - q.delta[query]);
      weight *= multiplier;
    }
  }
}

/// The gradients of a block's keys and values, of which a thread has two rows.
template <int columns>
struct KeySums {
  FragmentC keys[columns / 8]{};
  FragmentC values[columns / 8]{};
};

/// [+]= dS' queries and (P Z)' output gradients.
template <Wanted wanted, class T, int columns>
DSTRAIN_DEVICE void add_queries(const HalfBackward<T>& args,
                                const AttentionPlace& at,
                                const KeyShared<T, columns>& s,
                                const Queries<T, columns>& q,
                                KeySums<columns>& sums) {
  FragmentC weights[turn_queries / 8]{};
  FragmentC gradients[turn_queries / 8]{};
  add_product_transposed(s.keys, warp() * 16, q.queries, weights);
  if constexpr (wanted != Wanted::values) {
    add_product_transposed(s.values, warp() * 16, q.output_gradient, gradients);
  }
  finish_transposed_scores(args, at, q, weights);
  weigh_keys(args, q, weights, gradients);
  if constexpr (wanted != Wanted::keys) {
    add_rounded_product<T>(weights, q.output_gradient, sums.values);
  }
  if constexpr (wanted != Wanted::values) {
    add_rounded_product<T>(gradients, q.queries, sums.keys);
  }
}

/// Stores the sums of a block, whose threads are all here.
template <Wanted wanted, class T, int columns>
DSTRAIN_DEVICE void store_keys(const HalfBackward<T>& args,
                               const AttentionPlace& at,
                               const KeySums<columns>& sums) {
  auto& tile = shared<SumTile<columns>>();
  if constexpr (wanted != Wanted::values) {
    put_sums(sums.keys, tile);
    sync();
    store_tile<half_threads, half_rows, columns, T>(tile.sum, args.query_gradient_factor,
                                                    args.rotary, true,
                                                    key_rows(args.sizes, args.key_gradient, at));
  }
  if constexpr (wanted == Wanted::both) sync();
  if constexpr (wanted != Wanted::keys) {
    put_sums(sums.values, tile);
    sync();
    store_tile<half_threads, half_rows, columns, T>(tile.sum, 1, args.rotary, false,
                                                    key_rows(args.sizes, args.value_gradient, at));
  }
}

/// Blocks that a multiprocessor is to have room for, with tiles of so many columns. A fourth block
/// leaves each thread 128 registers, which spill for all architectures but 9.0.
constexpr int key_blocks_at_once(int columns) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
  constexpr int of_64 = 3;
#else
  constexpr int of_64 = 4;
#endif
  return columns <= 64 ? of_64 : columns <= 128 ? 2 : 1;
}

/// Blocks: tiles of keys, heads of keys, sequences. Adds up over the heads of queries that share
/// the head, and over their tiles, in order; those of the next turn are copied during one.
template <class T, int columns, Wanted wanted>
DSTRAIN_KERNEL_AT_ONCE(half_threads, key_blocks_at_once(columns))
half_key_kernel(DSTRAIN_ARGUMENT HalfBackward<T> args) {
  auto& s = shared<KeyShared<T, columns>>();
  const std::int64_t group = args.sizes.group();
  AttentionPlace first(block_z(), block_y() * group, block_y());
  first.tile = block_x();
  start_tile(key_rows(args.sizes, args.key, first), args.copies, s.keys);
  start_tile(key_rows(args.sizes, args.value, first), args.copies, s.values);
  KeySums<columns> sums;
  AttentionPlace next = first;
  bool more = find_queries(args, first.head + group, next);
  if (more) start_queries(args, next, s.turn[0]);
  for (int turn = 0; more; turn = 1 - turn) {
    const AttentionPlace at = next;
    next.query += turn_queries;
    more = find_queries(args, first.head + group, next);
    arrive();
    if (more) start_queries(args, next, s.turn[1 - turn]);
    add_queries<wanted>(args, at, s, s.turn[turn], sums);
  }
  arrive();
  store_keys<wanted>(args, first, sums);
}

// Queries: a block has a tile of queries and takes turns of keys.

/// The keys of a turn.
template <class T, int columns>
struct Keys {
  HalfTile<T, key_tile, columns> keys;
  HalfTile<T, key_tile, columns> values;
  float biases[half_rows + key_tile];
};

template <class T, int columns>
struct QueryShared {
  HalfTile<T, half_rows, columns> queries;
  HalfTile<T, half_rows, columns> output_gradient;
  Keys<T, columns> turn[2];
};
/// The same, where the gradients of biases are wanted.
template <class T, int columns>
struct BiasedShared {
  QueryShared<T, columns> queries;
  float gradients[half_rows][key_tile + padding];
  DiagonalSums<half_rows> diagonals;
  float sums[2 * half_threads];  ///< by row of the table; each is of one thread alone
};

/// What a thread knows of its two rows.
template <int columns>
struct QueryRows {
  float logsumexp[2];  ///< times log2(e)
  float delta[2];
  Sight::Range visible[2];
  FragmentC sums[columns / 8]{};
};

using Scores = FragmentC[key_tile / 8];

template <class T, int columns>
DSTRAIN_DEVICE void start_keys(const HalfBackward<T>& args,
                               const AttentionPlace& at,
                               Keys<T, columns>& k) {
  start_tile(key_rows(args.sizes, args.key, at), args.copies, k.keys);
  start_tile(key_rows(args.sizes, args.value, at), args.copies, k.values);
  load_biases<half_threads, half_rows>(args.bias, args.bias_table, args.sizes.heads, at.head,
                                       at.key() - at.query, k.biases);
}

template <class T, int columns>
DSTRAIN_DEVICE void read_rows(const HalfBackward<T>& args,
                              const AttentionPlace& at,
                              QueryRows<columns>& rows) {
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    const std::int64_t query = at.query + block_row(which);
    const std::int64_t of_query =
        (at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query;
    const bool exists = query < args.sizes.tokens;
    rows.logsumexp[which] = exists ? args.logsumexp[of_query] * log2_e : 0.0F;
    rows.delta[which] = exists ? args.delta[of_query] : 0.0F;
    rows.visible[which] = args.sight.of(at.sequence, query);
  }
}

template <class T, int columns>
DSTRAIN_DEVICE void clear_biases(BiasedShared<T, columns>& s) {
#pragma unroll
  for (int i = 0; i < 2; ++i) s.sums[thread() + i * half_threads] = 0;
}

/// Adds the gradients of a tile's scores by row of the table of biases.
template <class T, int columns>
DSTRAIN_DEVICE void add_biases(const HalfBackward<T>& args,
                               const AttentionPlace& at,
                               const Scores& gradients,
                               BiasedShared<T, columns>& s) {
  for_each_sum(gradients, [&](int which, int column, const float& gradient) {
    s.gradients[block_row(which)][column] = gradient;
  });
  sync();
  add_diagonals<half_threads>(args.bias, at, s.gradients, s.diagonals);
  sync();
#pragma unroll 1
  for (int row = thread(); row < 2 * half_threads; row += half_threads) {
    s.sums[row] += sum_of_bias(s.diagonals, row);
  }
}

/// What became of them, when the block is done.
template <class T, int columns>
DSTRAIN_DEVICE void store_biases(const HalfBackward<T>& args,
                                 const AttentionPlace& at,
                                 const BiasedShared<T, columns>& s) {
  const std::int64_t of_tile =
      (at.sequence * args.sizes.heads + at.head) * blocks_x() + at.query / half_rows;
#pragma unroll 1
  for (int row = thread(); row < args.bias.buckets; row += half_threads) {
    args.bias_sums[of_tile * args.bias.buckets + row] = s.sums[row];
  }
}

/// [+]= dS keys.
template <class T, int columns>
DSTRAIN_DEVICE void add_keys(const HalfBackward<T>& args,
                             const AttentionPlace& at,
                             const QueryShared<T, columns>& s,
                             const Keys<T, columns>& k,
                             QueryRows<columns>& rows) {
  Scores scores{};
  add_product_transposed(s.queries, warp() * 16, k.keys, scores);
  finish_scores(args, at, k.biases, rows.visible, scores);
  for_each_sum(scores, [&](int which, int, float& score) {
    score = approximate_exp2(score - rows.logsumexp[which]);
  });
  Scores gradients{};
  add_product_transposed(s.output_gradient, warp() * 16, k.values, gradients);
  if (args.mask.active()) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const std::int64_t query = at.query + block_row(which);
      drop_row(args.mask, at.sequence, dropout_group(args.sizes, at.head, query, at.tile), which,
               gradients);
    }
  }
#pragma unroll
  for (int i = 0; i < key_tile / 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      scores[i].sums[j] *= gradients[i].sums[j] - rows.delta[j / 2];
    }
  }
  add_rounded_product<T>(scores, k.keys, rows.sums);
  if (args.bias_sums != nullptr) add_biases(args, at, scores, shared<BiasedShared<T, columns>>());
}

/// Stores the sums of a block, whose threads are all here.
template <class T, int columns>
DSTRAIN_DEVICE void store_queries(const HalfBackward<T>& args,
                                  const AttentionPlace& at,
                                  const QueryRows<columns>& rows) {
  auto& tile = shared<SumTile<columns>>();
  put_sums(rows.sums, tile);
  sync();
  store_tile<half_threads, half_rows, columns, T>(tile.sum, args.query_gradient_factor, args.rotary,
                                                  true,
                                                  query_rows(args.sizes, args.query_gradient, at));
}

constexpr int query_blocks_at_once(int columns) {
  return columns <= 64 ? 3 : columns <= 128 ? 2 : 1;
}

/// Blocks: tiles of queries, those that see most keys first, heads, sequences. The keys of the next
/// turn are copied during one.
template <class T, int columns>
DSTRAIN_KERNEL_AT_ONCE(half_threads, query_blocks_at_once(columns))
half_query_kernel(DSTRAIN_ARGUMENT HalfBackward<T> args) {
  auto& s = shared<QueryShared<T, columns>>();
  AttentionPlace at(block_z(), block_y(), block_y() / args.sizes.group());
  at.query = (blocks_x() - 1 - block_x()) * half_rows;
  start_tile(query_rows(args.sizes, args.query, at), args.copies, s.queries);
  start_tile(query_rows(args.sizes, args.output_gradient, at), args.copies, s.output_gradient);
  QueryRows<columns> rows;
  read_rows(args, at, rows);
  const bool biased = args.bias_sums != nullptr;
  if (biased) clear_biases(shared<BiasedShared<T, columns>>());
  const Sight::Range range = args.sight.of_tile(at.sequence, at.query, half_rows);
  at.tile = range.begin / key_tile;
  if (at.key() < range.end) start_keys(args, at, s.turn[0]);
  for (int turn = 0; at.key() < range.end; turn = 1 - turn) {
    AttentionPlace next = at;
    ++next.tile;
    arrive();
    if (next.key() < range.end) start_keys(args, next, s.turn[1 - turn]);
    add_keys(args, at, s, s.turn[turn], rows);
    at = next;
  }
  arrive();
  if (biased) store_biases(args, at, shared<BiasedShared<T, columns>>());
  store_queries(args, at, rows);
}

template <class T, int columns>
void launch_kernels(const HalfBackward<T>& args, StreamView stream) {
  const AttentionSizes& sizes = args.sizes;
  Grid grid{.x = divide_up(sizes.keys, key_tile),
            .y = sizes.kv_heads,
            .z = sizes.sequences,
            .threads = half_threads,
            .shared_bytes = sizeof(KeyShared<T, columns>)};
  if constexpr (columns <= 128) {
    launch("attention_backward", half_key_kernel<T, columns, Wanted::both>, grid, args, stream);
  } else {
    launch("attention_backward", half_key_kernel<T, columns, Wanted::keys>, grid, args, stream);
    launch("attention_backward", half_key_kernel<T, columns, Wanted::values>, grid, args, stream);
  }
  grid.x = divide_up(sizes.tokens, half_rows);
  grid.y = sizes.heads;
  grid.shared_bytes = args.bias_sums == nullptr ? sizeof(QueryShared<T, columns>)
                                                : sizeof(BiasedShared<T, columns>);
  launch("attention_backward", half_query_kernel<T, columns>, grid, args, stream);
}

}  // namespace

template <class T>
void launch_half_backward(const AttentionBackward<T>& backward,
                          const TurnedHeads& turned,
                          StreamView stream) {
  const std::int64_t head_size = backward.sizes.head_size;
  HalfBackward<T> args{backward};
  turn_inputs(args, turned, stream);
  args.copies = is_aligned(args.query, head_size) && is_aligned(args.key, head_size) &&
                is_aligned(args.value, head_size) && is_aligned(args.output_gradient, head_size);
  with_columns(head_size, [&](auto columns) { launch_kernels<T, columns>(args, stream); });
}
template void launch_half_backward<BFloat16>(const AttentionBackward<BFloat16>&,
                                             const TurnedHeads&,
                                             StreamView);
template void launch_half_backward<Float16>(const AttentionBackward<Float16>&,
                                            const TurnedHeads&,
                                            StreamView);

}  // namespace dstrain::ops::gpu
