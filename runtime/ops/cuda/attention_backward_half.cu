#include <algorithm>

#include "runtime/ops/cuda/attention_backward.h"
#include "runtime/ops/cuda/attention_half.h"
#include "runtime/ops/cuda/turn_heads.h"

namespace dstrain::ops::gpu {
namespace {

static_assert(half_rows == attention_backward_half_queries && half_rows == key_tile);

template <class T>
struct HalfBackward : AttentionBackward<T> {
  bool copies = false;  ///< whether inputs can be copied 16 bytes at a time
  ScoreGradients scores;
  T* score_gradients = nullptr;  ///< stored score gradients, or null
  /// The first sequence and key head of a launch.
  std::int64_t first_sequence = 0;
  std::int64_t first_key_head = 0;
};

/// The patch of stored score gradients for a warp's queries and keys.
template <class T>
DSTRAIN_DEVICE T* score_patch(const HalfBackward<T>& args, const AttentionPlace& at) {
  const std::int64_t group = args.sizes.group();
  const std::int64_t head = (at.sequence - args.first_sequence) * args.scores.kv_heads * group +
                            at.head - args.first_key_head * group;
  const std::int64_t patch = head * args.scores.head_patches +
                             args.scores.patches_before(at.query / ScoreGradients::queries) +
                             at.tile;
  return args.score_gradients + patch * ScoreGradients::queries * ScoreGradients::keys;
}

/// A block's sums in shared memory, from which they are rotated back and stored.
template <int rows, int columns>
struct SumTile {
  float sum[rows][columns + padding];
};

/// Stores the sums of a block. All its threads must call.
template <class T, int tiles, int count>
DSTRAIN_DEVICE void store_sums(const FragmentC (&sums)[tiles][count],
                               float factor,
                               const Rotary& rotary,
                               bool turns,
                               const TileRows<T>& to) {
  constexpr int rows = tiles * half_rows;
  constexpr int columns = count * 8;
  auto& tile = shared<SumTile<rows, columns>>();
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    for_each_sum(sums[i], [&](int which, int column, const float& sum) {
      tile.sum[block_row(which, i, tiles)][column] = sum;
    });
  }
  sync();
  store_tile<half_threads, rows, columns, T>(tile.sum, factor, rotary, turns, to);
}

// Keys: a block owns a tile of keys and iterates over tiles of queries ("turns"). Scores are
// transposed, with keys as rows, which leaves them in the registers that the next product reads.

/// Queries per turn: as many as registers can hold beside two gradients of 128 columns.
constexpr int turn_queries = 32;
static_assert(turn_queries == ScoreGradients::queries && key_tile == ScoreGradients::keys);

/// Tiles of 16 keys per warp. Two tiles halve the loads from shared memory per product.
template <int columns>
constexpr int warp_tiles = columns <= 64 ? 2 : 1;
/// Keys per block: one or two key tiles.
template <int columns>
constexpr int block_keys = warp_tiles<columns>* half_rows;

/// If registers cannot hold both gradients, two kernels compute one each.
enum class Wanted : std::uint8_t { both, keys, values };

/// Gives each thread eight consecutive queries in four fragments, so that it can store their
/// gradients at once: columns 2 t and 2 t + 1 of fragment i hold query 8 t + 2 i and the next one.
struct QueryOrder {
  DSTRAIN_DEVICE int operator()(int query) const {
    return query % 8 / 2 * 8 + query / 8 * 2 + query % 2;
  }
  DSTRAIN_DEVICE static int first_of_thread() { return fragment_column() * 4; }
};
static_assert(turn_queries == 32, "QueryOrder is of four fragments");

/// The queries of a turn, in QueryOrder, with their statistics.
template <class T, int columns>
struct Queries {
  static constexpr int drop_tiles = block_keys<columns> / key_tile;
  HalfTile<T, turn_queries, columns> queries;
  HalfTile<T, turn_queries, columns> output_gradient;
  float logsumexp[turn_queries];  ///< times log2(e)
  float delta[turn_queries];
  Sight::Range visible[turn_queries];  ///< relative to the block's first key
  /// Bit i of element j: dropout keeps key 16 i + j of the tile.
  std::uint8_t kept[turn_queries][drop_tiles][16];
  float biases[turn_queries + block_keys<columns>];
};

template <class T, int columns>
struct KeyShared {
  HalfTile<T, block_keys<columns>, columns> keys;
  HalfTile<T, block_keys<columns>, columns> values;
  Queries<T, columns> turn[2];
};

template <class T, int columns>
DSTRAIN_DEVICE void draw_kept(const HalfBackward<T>& args,
                              const AttentionPlace& at,
                              Queries<T, columns>& q) {
  constexpr int tiles = Queries<T, columns>::drop_tiles;
#pragma unroll 1
  for (int i = thread(); i < turn_queries * tiles * 16; i += half_threads) {
    const int query = i / (tiles * 16);
    const int tile = i / 16 % tiles;
    const DropoutMask::Four drawn = args.mask.draw(
        at.sequence, dropout_group(args.sizes, at.head, at.query + query, at.tile + tile), i % 16);
    unsigned kept = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (drawn.multiplier[j] > 0) kept |= 1U << j;
    }
    q.kept[QueryOrder()(query)][tile][i % 16] = static_cast<std::uint8_t>(kept);
  }
}

template <class T, int columns>
DSTRAIN_DEVICE void start_queries(const HalfBackward<T>& args,
                                  const AttentionPlace& at,
                                  Queries<T, columns>& q) {
  start_tile(query_rows(args.sizes, args.query, at), args.copies, q.queries, QueryOrder());
  start_tile(query_rows(args.sizes, args.output_gradient, at), args.copies, q.output_gradient,
             QueryOrder());
  load_biases<half_threads, turn_queries>(args.bias, args.bias_table, args.sizes.heads, at.head,
                                          at.key() - at.query, q.biases);
  if (args.mask.active()) draw_kept(args, at, q);
  if (thread() >= turn_queries) return;
  const std::int64_t query = at.query + thread();
  const std::int64_t of_query =
      (at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query;
  const bool exists = query < args.sizes.tokens;
  const int column = QueryOrder()(thread());
  q.logsumexp[column] = exists ? args.logsumexp[of_query] * log2_e : 0.0F;
  q.delta[column] = exists ? args.delta[of_query] : 0.0F;
  q.visible[column] = args.sight.of(at.sequence, query).from(at.key());
}

/// Advances `at` to the next query tile that may see some of the keys, in this head or a later one
/// before `heads`. Returns false if there is none.
template <class T>
DSTRAIN_DEVICE bool find_queries(const HalfBackward<T>& args,
                                 std::int32_t heads,
                                 int keys,
                                 AttentionPlace& at) {
  const std::int64_t first = args.sight.causal ? at.key() / turn_queries * turn_queries : 0;
  for (; at.head < heads; ++at.head) {
    at.query = at.query < first ? first : at.query;
    for (; at.query < args.sizes.tokens; at.query += turn_queries) {
      if (sees(args, at, turn_queries, keys)) return true;
    }
    at.query = 0;
  }
  return false;
}

/// Scores or their gradients: the warp's keys by the turn's queries.
template <int columns>
using TurnScores = FragmentC[warp_tiles<columns>][turn_queries / 8];

/// Calls `body(row of the block, column, value)`.
template <int tiles, class Body>
DSTRAIN_DEVICE void for_each_score(FragmentC (&scores)[tiles][turn_queries / 8], const Body& body) {
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    for_each_sum(scores[i], [&](int which, int column, float& score) {
      body(block_row(which, i, tiles), column, score);
    });
  }
}

/// finish_scores() for the transposed products of keys and queries.
template <class T, int columns>
DSTRAIN_DEVICE void finish_transposed_scores(const HalfBackward<T>& args,
                                             const AttentionPlace& at,
                                             const Queries<T, columns>& q,
                                             TurnScores<columns>& scores) {
  constexpr int warp_keys = warp_tiles<columns> * 16;
  for_each_score(scores, [&](int, int column, float& score) {
    score = score * args.query_factor - q.logsumexp[column];
  });
  if (args.bias.active()) {
    // A thread's biases lie at constant offsets from the one of its first row and query.
    const int first = block_row(0, 0, warp_tiles<columns>);
    const float* const biases = &q.biases[first - QueryOrder::first_of_thread() + turn_queries - 1];
    for_each_score(scores, [&](int row, int column, float& score) {
      const int ahead = column - fragment_column();
      score += biases[row - first - (ahead / 8 * 2 + ahead % 8)];
    });
  }
  if (args.sight.all_see(at.sequence, at.query, turn_queries, at.key() + warp() * warp_keys,
                         warp_keys)) {
    return;
  }
  for_each_score(scores, [&](int row, int column, float& score) {
    if (!q.visible[column].contains(row)) score = nothing;
  });
}

/// Multiplies values by the dropout multipliers of their scores.
template <class T, int columns>
DSTRAIN_DEVICE void drop_scores(const HalfBackward<T>& args,
                                const Queries<T, columns>& q,
                                TurnScores<columns>& values) {
  if (!args.mask.active()) return;
  constexpr int tiles = warp_tiles<columns>;
  constexpr int query_bytes = static_cast<int>(sizeof(q.kept[0]));
  const int first = block_row(0, 0, tiles);
  const int first_bit = warp() * tiles % 4;
  const std::uint8_t* const kept = &q.kept[fragment_column()][warp() * tiles / 4][fragment_row()];
  for_each_score(values, [&](int row, int column, float& value) {
    const int below = row - first;
    const unsigned bits = kept[(column - fragment_column()) * query_bytes + below % 16];
    value *= (bits >> (first_bit + below / 16) & 1U) != 0 ? args.mask.kept : 0.0F;
  });
}

/// Turns scores into P Z and dP into dS, both transposed.
template <class T, int columns>
DSTRAIN_DEVICE void weigh_keys(const HalfBackward<T>& args,
                               const Queries<T, columns>& q,
                               TurnScores<columns>& weights,
                               TurnScores<columns>& gradients) {
  drop_scores(args, q, gradients);
#pragma unroll
  for (int tile = 0; tile < warp_tiles<columns>; ++tile) {
#pragma unroll
    for (int i = 0; i < turn_queries / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float& weight = weights[tile][i].sums[j];
        weight = approximate_exp2(weight);
        gradients[tile][i].sums[j] =
            weight * (gradients[tile][i].sums[j] - q.delta[i * 8 + fragment_column() + j % 2]);
      }
    }
  }
  drop_scores(args, q, weights);
}

/// Stores score gradients as a patch with one row per key.
template <class T, int tiles>
DSTRAIN_DEVICE void keep_gradients(const FragmentC (&gradients)[tiles][turn_queries / 8],
                                   T* patch) {
  struct alignas(16) Chunk {
    std::uint32_t pairs[4];
  };
  const int first = warp() * tiles % (key_tile / 16) * 16 + fragment_row();
  T* const rows = patch + first * turn_queries + QueryOrder::first_of_thread();
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      Chunk chunk{};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const own = &gradients[tile][i].sums[2 * which];
        chunk.pairs[i] = pack<T>(own[0], own[1]);
      }
      copy_chunk(rows + (tile * 16 + 8 * which) * turn_queries, &chunk);
    }
  }
}

/// The warp's rows of the block's key and value gradients.
template <int columns>
struct KeySums {
  FragmentC keys[warp_tiles<columns>][columns / 8]{};
  FragmentC values[warp_tiles<columns>][columns / 8]{};
};

/// keys += dS' queries, values += (P Z)' output gradients, unless no query sees the warp's keys.
template <Wanted wanted, class T, int columns>
DSTRAIN_DEVICE void add_queries(const HalfBackward<T>& args,
                                AttentionPlace at,
                                const KeyShared<T, columns>& s,
                                const Queries<T, columns>& q,
                                KeySums<columns>& sums) {
  const int first_row = warp() * warp_tiles<columns> * 16;
  AttentionPlace tile = at;
  tile.tile += first_row / key_tile;
  if (block_keys < columns >> key_tile && !sees(args, tile, turn_queries)) return;
  TurnScores<columns> weights{};
  TurnScores<columns> gradients{};
  add_product_transposed(s.keys, first_row, q.queries, weights);
  if constexpr (wanted != Wanted::values) {
    add_product_transposed(s.values, first_row, q.output_gradient, gradients);
  }
  finish_transposed_scores(args, at, q, weights);
  weigh_keys(args, q, weights, gradients);
  if constexpr (wanted != Wanted::keys) {
    add_rounded_product<T>(weights, q.output_gradient, sums.values);
  }
  if constexpr (wanted != Wanted::values) {
    if (args.score_gradients != nullptr) keep_gradients(gradients, score_patch(args, tile));
    add_rounded_product<T>(gradients, q.queries, sums.keys);
  }
}

/// Stores the sums of a block. All its threads must call.
template <Wanted wanted, class T, int columns>
DSTRAIN_DEVICE void store_keys(const HalfBackward<T>& args,
                               const AttentionPlace& at,
                               const KeySums<columns>& sums) {
  if constexpr (wanted != Wanted::values) {
    store_sums(sums.keys, args.query_gradient_factor, args.rotary, true,
               key_rows(args.sizes, args.key_gradient, at));
  }
  if constexpr (wanted == Wanted::both) sync();
  if constexpr (wanted != Wanted::keys) {
    store_sums(sums.values, 1, args.rotary, false, key_rows(args.sizes, args.value_gradient, at));
  }
}

/// Resident blocks per multiprocessor that the kernel is compiled for.
constexpr int key_blocks_at_once(int columns) {
  return columns <= 128 ? 2 : 1;
}

/// Grid: (key heads, sequences, key tiles); tiles that most queries see start first. Sums in order
/// over the query heads that share the key head, and over their tiles. The next turn's queries are
/// copied during the current one.
template <class T, int columns, Wanted wanted>
DSTRAIN_KERNEL_AT_ONCE(half_threads, key_blocks_at_once(columns))
half_key_kernel(DSTRAIN_ARGUMENT HalfBackward<T> args) {
  auto& s = shared<KeyShared<T, columns>>();
  const std::int64_t group = args.sizes.group();
  const std::int64_t key_head = args.first_key_head + block_x();
  AttentionPlace first(args.first_sequence + block_y(), key_head * group, key_head);
  first.tile = static_cast<std::int32_t>(block_z()) * (block_keys<columns> / key_tile);
  start_tile(key_rows(args.sizes, args.key, first), args.copies, s.keys);
  start_tile(key_rows(args.sizes, args.value, first), args.copies, s.values);
  KeySums<columns> sums;
  AttentionPlace next = first;
  const auto heads = static_cast<std::int32_t>(first.head + group);
  bool more = find_queries(args, heads, block_keys<columns>, next);
  if (more) start_queries(args, next, s.turn[0]);
  for (int turn = 0; more; turn = 1 - turn) {
    const AttentionPlace at = next;
    next.query += turn_queries;
    more = find_queries(args, heads, block_keys<columns>, next);
    arrive();
    if (more) start_queries(args, next, s.turn[1 - turn]);
    add_queries<wanted>(args, at, s, s.turn[turn], sums);
  }
  arrive();
  store_keys<wanted>(args, first, sums);
}

// Queries: a block owns a tile of queries and iterates over tiles of keys.

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
/// Shared memory if gradients of biases are wanted.
template <class T, int columns>
struct BiasedShared {
  QueryShared<T, columns> queries;
  float gradients[half_rows][key_tile + padding];
  DiagonalSums<half_rows> diagonals;
  float sums[2 * half_threads];  ///< by row of the bias table; only one thread accesses each
};

/// A thread's state of its two rows.
template <int columns>
struct QueryRows {
  float logsumexp[2];  ///< times log2(e)
  float delta[2];
  FragmentC sums[1][columns / 8]{};
};

using Scores = FragmentC[1][key_tile / 8];

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
  }
}

template <class T, int columns>
DSTRAIN_DEVICE void clear_biases(BiasedShared<T, columns>& s) {
#pragma unroll
  for (int i = 0; i < 2; ++i) s.sums[thread() + i * half_threads] = 0;
}

/// Adds the score gradients of a tile to the sums of their rows of the bias table.
template <class T, int columns>
DSTRAIN_DEVICE void add_biases(const HalfBackward<T>& args,
                               const AttentionPlace& at,
                               const Scores& gradients,
                               BiasedShared<T, columns>& s) {
  for_each_sum(gradients[0], [&](int which, int column, const float& gradient) {
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

/// sums += dS keys.
template <class T, int columns>
DSTRAIN_DEVICE void add_keys(const HalfBackward<T>& args,
                             const AttentionPlace& at,
                             const QueryShared<T, columns>& s,
                             const Keys<T, columns>& k,
                             QueryRows<columns>& rows) {
  Scores scores{};
  add_product_transposed(s.queries, warp() * 16, k.keys, scores);
  finish_scores(args, at, k.biases, scores);
  const float factor = score_factor(args);
  for_each_sum(scores[0], [&](int which, int, float& score) {
    score = approximate_exp2(score * factor - rows.logsumexp[which]);
  });
  Scores gradients{};
  add_product_transposed(s.output_gradient, warp() * 16, k.values, gradients);
  if (args.mask.active()) {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      const std::int64_t query = at.query + block_row(which);
      drop_row(args.mask, at.sequence, dropout_group(args.sizes, at.head, query, at.tile), which,
               gradients[0]);
    }
  }
#pragma unroll
  for (int i = 0; i < key_tile / 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      scores[0][i].sums[j] *= gradients[0][i].sums[j] - rows.delta[j / 2];
    }
  }
  add_rounded_product<T>(scores, k.keys, rows.sums);
  if (args.bias_sums != nullptr) add_biases(args, at, scores, shared<BiasedShared<T, columns>>());
}

constexpr int query_blocks_at_once(int columns) {
  return columns <= 64 ? 3 : columns <= 128 ? 2 : 1;
}

/// Grid: (query tiles, heads, sequences); tiles that see most keys start first. The next turn's
/// keys are copied during the current one.
template <class T, int columns>
DSTRAIN_KERNEL_AT_ONCE(half_threads, query_blocks_at_once(columns))
half_query_kernel(DSTRAIN_ARGUMENT HalfBackward<T> args) {
  auto& s = shared<QueryShared<T, columns>>();
  AttentionPlace at(block_z(), block_y(), block_y() / args.sizes.group());
  at.query = static_cast<std::int32_t>(blocks_x() - 1 - block_x()) * half_rows;
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
  store_sums(rows.sums, args.query_gradient_factor, args.rotary, true,
             query_rows(args.sizes, args.query_gradient, at));
}

// Queries with stored score gradients: a block owns 128 queries and iterates over tiles of keys.

constexpr int patch_rows = half_threads / warp_threads * turn_queries;

/// The keys of a turn and each warp's patch of score gradients, both transposed.
template <class T, int columns>
struct PatchTurn {
  HalfTile<T, key_tile, columns> keys;
  HalfTile<T, key_tile, turn_queries> patch[half_threads / warp_threads];
};
template <class T, int columns>
struct PatchShared {
  PatchTurn<T, columns> turn[2];
};

/// Whether the key kernel has stored score gradients for the warp's queries.
template <class T>
DSTRAIN_DEVICE bool kept_patch(const HalfBackward<T>& args, const AttentionPlace& of_warp) {
  return of_warp.query < args.sizes.tokens && sees(args, of_warp, turn_queries);
}

template <class T, int columns>
DSTRAIN_DEVICE void start_patch(const HalfBackward<T>& args,
                                const AttentionPlace& of_warp,
                                PatchTurn<T, columns>& turn) {
  start_tile(key_rows(args.sizes, args.key, of_warp), args.copies, turn.keys);
  if (!kept_patch(args, of_warp)) return;
  constexpr int chunks = turn_queries / 8;
  constexpr int at_once = warp_threads / chunks;
  const int column = lane() % chunks * 8;
  const T* const patch = score_patch(args, of_warp);
#pragma unroll
  for (int i = 0; i < key_tile / at_once; ++i) {
    const int row = i * at_once + lane() / chunks;
    start_copy(&turn.patch[warp()].element[row][column], patch + row * turn_queries + column, true);
  }
}

constexpr int patch_blocks_at_once(int columns) {
  return columns <= 64 ? 3 : 2;
}

/// Grid: (query heads, sequences, query tiles); tiles that see most keys start first. The next
/// turn's keys are copied during the current one.
template <class T, int columns>
DSTRAIN_KERNEL_AT_ONCE(half_threads, patch_blocks_at_once(columns))
half_patch_kernel(DSTRAIN_ARGUMENT HalfBackward<T> args) {
  auto& s = shared<PatchShared<T, columns>>();
  const std::int64_t head = args.first_key_head * args.sizes.group() + block_x();
  AttentionPlace at(args.first_sequence + block_y(), head, head / args.sizes.group());
  at.query = static_cast<std::int32_t>(blocks_z() - 1 - block_z()) * patch_rows;
  const Sight::Range range = args.sight.of_tile(at.sequence, at.query, patch_rows);
  AttentionPlace of_warp = at;
  of_warp.query += warp() * turn_queries;
  of_warp.tile = range.begin / key_tile;
  FragmentC sums[turn_queries / 16][columns / 8]{};
  if (of_warp.key() < range.end) start_patch(args, of_warp, s.turn[0]);
  for (int turn = 0; of_warp.key() < range.end; turn = 1 - turn) {
    AttentionPlace next = of_warp;
    ++next.tile;
    arrive();
    if (next.key() < range.end) start_patch(args, next, s.turn[1 - turn]);
    if (kept_patch(args, of_warp)) {
      add_transposed_product(s.turn[turn].patch[warp()], s.turn[turn].keys, sums);
    }
    of_warp = next;
  }
  arrive();
  store_sums(sums, args.query_gradient_factor, args.rotary, true,
             query_rows(args.sizes, args.query_gradient, at));
}

/// Computes the key and value gradients of `kv_heads` heads in `sequences` sequences.
template <class T, int columns>
void launch_keys(const HalfBackward<T>& args,
                 std::int64_t kv_heads,
                 std::int64_t sequences,
                 StreamView stream) {
  const Grid grid{.x = kv_heads,
                  .y = sequences,
                  .z = divide_up(args.sizes.keys, block_keys<columns>),
                  .threads = half_threads,
                  .shared_bytes = sizeof(KeyShared<T, columns>)};
  if constexpr (columns <= 128) {
    launch("attention_backward", half_key_kernel<T, columns, Wanted::both>, grid, args, stream);
  } else {
    launch("attention_backward", half_key_kernel<T, columns, Wanted::keys>, grid, args, stream);
    launch("attention_backward", half_key_kernel<T, columns, Wanted::values>, grid, args, stream);
  }
}

/// Computes all gradients; score gradients are computed twice, for keys and for queries.
template <class T, int columns>
void launch_twice(const HalfBackward<T>& args, StreamView stream) {
  const AttentionSizes& sizes = args.sizes;
  launch_keys<T, columns>(args, sizes.kv_heads, sizes.sequences, stream);
  launch("attention_backward", half_query_kernel<T, columns>,
         {.x = divide_up(sizes.tokens, half_rows),
          .y = sizes.heads,
          .z = sizes.sequences,
          .threads = half_threads,
          .shared_bytes = args.bias_sums == nullptr ? sizeof(QueryShared<T, columns>)
                                                    : sizeof(BiasedShared<T, columns>)},
         args, stream);
}

/// Computes all gradients; score gradients are stored for as many heads at a time as fit.
template <class T, int columns>
void launch_once(HalfBackward<T> args, StreamView stream) {
  const AttentionSizes& sizes = args.sizes;
  for (; args.first_sequence < sizes.sequences; args.first_sequence += args.scores.sequences) {
    const std::int64_t sequences =
        std::min(args.scores.sequences, sizes.sequences - args.first_sequence);
    for (args.first_key_head = 0; args.first_key_head < sizes.kv_heads;
         args.first_key_head += args.scores.kv_heads) {
      const std::int64_t kv_heads =
          std::min(args.scores.kv_heads, sizes.kv_heads - args.first_key_head);
      launch_keys<T, columns>(args, kv_heads, sequences, stream);
      launch("attention_backward", half_patch_kernel<T, columns>,
             {.x = kv_heads * sizes.group(),
              .y = sequences,
              .z = divide_up(sizes.tokens, patch_rows),
              .threads = half_threads,
              .shared_bytes = sizeof(PatchShared<T, columns>)},
             args, stream);
    }
  }
}

}  // namespace

template <class T>
void launch_half_backward(const AttentionBackward<T>& backward,
                          const AttentionScratch& scratch,
                          StreamView stream) {
  const std::int64_t head_size = backward.sizes.head_size;
  HalfBackward<T> args{backward, false, scratch.scores};
  turn_inputs(args, scratch.turned, stream);
  args.copies = is_aligned(args.query, head_size) && is_aligned(args.key, head_size) &&
                is_aligned(args.value, head_size) && is_aligned(args.output_gradient, head_size);
  if (args.scores.sequences > 0) args.score_gradients = elements<T>(scratch.score_gradients);
  with_columns(head_size, [&](auto columns) {
    if constexpr (columns <= ScoreGradients::head_size_max) {
      if (args.score_gradients != nullptr) return launch_once<T, columns>(args, stream);
    }
    launch_twice<T, columns>(args, stream);
  });
}
template void launch_half_backward<BFloat16>(const AttentionBackward<BFloat16>&,
                                             const AttentionScratch&,
                                             StreamView);
template void launch_half_backward<Float16>(const AttentionBackward<Float16>&,
                                            const AttentionScratch&,
                                            StreamView);

}  // namespace dstrain::ops::gpu
